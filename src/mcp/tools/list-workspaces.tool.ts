import type { Deadline } from '../../common/deadline.js';
import { schemaOf } from '../../common/input/schema-of.js';
import type { Caller } from '../../identity/caller.js';
import { WorkspaceListView } from '../../tasks/views.js';
import { toolInput } from './tool-input.js';
import type { Tool } from './tool.js';

export interface WorkspaceListing {
  listVisible(caller: Caller, deadline: Deadline): Promise<object>;
}

class NoInput {}

export function listWorkspacesTool(workspaces: WorkspaceListing): Tool {
  return {
    name: 'list_workspaces_kandev',
    title: 'List workspaces',
    description:
      'Lists the workspaces that you may see. Their ids narrow list_tasks_kandev and list_pending_questions_kandev to ' +
      'one workspace. Tasks can also be in no workspace; everybody sees those.',
    surface: 'external',
    inputSchema: schemaOf(NoInput),
    outputSchema: WorkspaceListView,
    annotations: { readOnlyHint: true, destructiveHint: false, idempotentHint: true, openWorldHint: false },
    handler: async (raw, call) => {
      toolInput(NoInput, raw);
      return workspaces.listVisible(call.caller, call.deadline);
    },
  };
}
