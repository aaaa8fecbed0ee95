import { Injectable } from '@nestjs/common';
import { issueToken } from './tokens.js';
import type { IssuedToken } from './tokens.js';

/**
 * Makes the token of a session's agent. Whoever creates or renews it stores `hash` in
 * `task_sessions.agent_token_hash`, which alone ends the previous one.
 */
@Injectable()
export class AgentTokens {
  issue(): IssuedToken {
    return issueToken('agent');
  }
}
