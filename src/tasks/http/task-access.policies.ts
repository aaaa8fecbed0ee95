import { Injectable, type OnModuleInit } from '@nestjs/common';
import { AccessPolicies } from '../../http/access-policies.js';
import { TaskAccess } from '../authorization/task-access.js';

/** Lets the guard ask who reaches a workspace, task, session or turn; the rules are {@link TaskAccess}'s. */
@Injectable()
export class TaskAccessPolicies implements OnModuleInit {
  constructor(
    private readonly policies: AccessPolicies,
    private readonly access: TaskAccess,
  ) {}

  onModuleInit(): void {
    this.policies.register('workspace', (caller, id, deadline) => this.access.workspace(caller, id, deadline));
    this.policies.register('task', async (caller, id, deadline) => {
      await this.access.task(caller, id, deadline);
    });
    this.policies.register('session', async (caller, id, deadline) => {
      await this.access.session(caller, id, deadline);
    });
    this.policies.register('turn', (caller, id, deadline, request) =>
      this.access.turn(caller, String(request.params['id']), id, deadline),
    );
  }
}
