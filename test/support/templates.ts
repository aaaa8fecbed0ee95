/** Where fresh databases come from: copies of a template that is migrated once in a run. */
export interface Templates {
  copy(migrated: boolean): Promise<string>;
  remove(url: string): Promise<void>;
}
