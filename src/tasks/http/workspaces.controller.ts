import { Body, Controller, Get, Post } from '@nestjs/common';
import type { Deadline } from '../../common/deadline.js';
import { Contract } from '../../http/contract.js';
import { CallerParam, DeadlineParam } from '../../http/request-params.js';
import type { Caller } from '../../identity/caller.js';
import { CreateWorkspaceInput } from '../inputs.js';
import { WORKSPACE, WORKSPACES } from './examples.js';
import { WorkspaceListView, WorkspaceView } from '../views.js';
import { Workspaces } from '../workspaces.service.js';

@Controller('api/v1/workspaces')
export class WorkspacesController {
  constructor(private readonly workspaces: Workspaces) {}

  @Post()
  @Contract({
    summary: 'Make a workspace',
    tag: 'Workspaces',
    access: { kind: 'identified', agents: false },
    body: CreateWorkspaceInput,
    bodyExample: { name: 'Payments team' },
    success: {
      status: 201,
      description: "The workspace, the caller's own",
      schema: WorkspaceView,
      example: WORKSPACE,
    },
  })
  create(@CallerParam() caller: Caller, @Body() input: CreateWorkspaceInput, @DeadlineParam() deadline: Deadline) {
    return this.workspaces.create(caller, input, deadline);
  }

  @Get()
  @Contract({
    summary: 'List the workspaces that the caller sees',
    tag: 'Workspaces',
    access: { kind: 'identified', agents: false },
    success: { status: 200, description: 'Oldest first', schema: WorkspaceListView, example: WORKSPACES },
  })
  list(@CallerParam() caller: Caller, @DeadlineParam() deadline: Deadline) {
    return this.workspaces.listVisible(caller, deadline);
  }
}
