import { ValidationError } from '../../common/domain-error.js';
import type { ResumeSettings } from '../domain/resume-settings.js';
import type { ResumeInput } from '../inputs.js';
import { newWebhookSecret } from './webhook/webhook-secret.js';
import { readWebhookUrl } from './webhook/webhook-url.js';

/** What a caller has chosen, checked; how it ends depends on what the session has. */
export interface ChosenResume {
  /**
   * To be stored instead of `before`, and the secret that was made for it, which its caller is to be shown. A webhook
   * that only moves keeps its secret. Gives the same each time it is asked.
   */
  over(before: ResumeSettings): { readonly settings: ResumeSettings; readonly madeSecret?: string };
}

/** @throws ValidationError naming the field below `resume` */
export function chosenResume(input: ResumeInput, rules: { readonly allowPrivate: boolean }): ChosenResume {
  const { mode, url, secret } = input;
  if (mode === 'pull') {
    for (const field of ['url', 'secret'] as const) {
      if (input[field] !== undefined) throw new ValidationError(`resume.${field}`, 'is only for the mode webhook');
    }
    return { over: () => ({ settings: { mode } }) };
  }
  if (url === undefined) throw new ValidationError('resume.url', 'is required for the mode webhook');
  const read = readWebhookUrl(url, rules);
  if ('problem' in read) throw new ValidationError('resume.url', read.problem);
  const made = newWebhookSecret();
  return {
    over(before) {
      const kept = secret ?? (before.mode === 'webhook' ? before.secret : undefined);
      return kept === undefined
        ? { settings: { mode, url, secret: made }, madeSecret: made }
        : { settings: { mode, url, secret: kept } };
    },
  };
}
