/** The right of this process to be the one server of a database. It dies with the process, however that ends. */
export interface InstanceLock {
  release(): Promise<void>;
}
