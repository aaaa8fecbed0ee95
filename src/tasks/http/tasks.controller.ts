import { Body, Controller, Delete, Get, Param, Post, Query } from '@nestjs/common';
import type { Deadline } from '../../common/deadline.js';
import { Contract } from '../../http/contract.js';
import { CallerParam, DeadlineParam } from '../../http/request-params.js';
import type { Caller } from '../../identity/caller.js';
import { CreateSessionInput, CreateTaskInput, ListTasksInput } from '../inputs.js';
import { Sessions } from '../sessions/sessions.service.js';
import { Tasks } from '../tasks.service.js';
import { COMPLETED_TASK, CREATED_SESSION, SESSIONS, TASK, TASKS } from './examples.js';
import { CreatedSessionView, SessionListView, TaskPageView, TaskView } from '../views.js';

const ofTask = { kind: 'task', from: { param: 'id' }, agents: false } as const;

@Controller('api/v1/tasks')
export class TasksController {
  constructor(
    private readonly tasks: Tasks,
    private readonly sessions: Sessions,
  ) {}

  @Post()
  @Contract({
    summary: 'Make a task',
    tag: 'Tasks',
    access: { kind: 'workspace', from: { body: 'workspace_id', optional: true }, agents: false },
    body: CreateTaskInput,
    bodyExample: { title: TASK.title, description: TASK.description, workspace_id: TASK.workspace_id },
    success: { status: 201, description: 'The task', schema: TaskView, example: TASK },
  })
  create(@CallerParam() caller: Caller, @Body() input: CreateTaskInput, @DeadlineParam() deadline: Deadline) {
    return this.tasks.create(caller, input, deadline);
  }

  @Get()
  @Contract({
    summary: 'List the tasks that the caller sees',
    tag: 'Tasks',
    access: { kind: 'identified', agents: false },
    query: ListTasksInput,
    success: { status: 200, description: 'A page, oldest first', schema: TaskPageView, example: TASKS },
  })
  list(@CallerParam() caller: Caller, @Query() input: ListTasksInput, @DeadlineParam() deadline: Deadline) {
    return this.tasks.list(caller, input, deadline);
  }

  @Get(':id')
  @Contract({
    summary: 'Read a task',
    tag: 'Tasks',
    access: ofTask,
    success: { status: 200, description: 'The task', schema: TaskView, example: TASK },
  })
  get(@CallerParam() caller: Caller, @Param('id') id: string, @DeadlineParam() deadline: Deadline) {
    return this.tasks.get(caller, id, deadline);
  }

  @Delete(':id')
  @Contract({
    summary: 'Delete a task with all of its sessions and messages',
    tag: 'Tasks',
    access: ofTask,
    success: { status: 204, description: 'It is gone' },
  })
  delete(@CallerParam() caller: Caller, @Param('id') id: string, @DeadlineParam() deadline: Deadline) {
    return this.tasks.delete(caller, id, deadline);
  }

  @Post(':id/complete')
  @Contract({
    summary: 'Complete a task',
    description: 'Refused while any of its sessions has an open question.',
    tag: 'Tasks',
    access: ofTask,
    success: { status: 200, description: 'The completed task', schema: TaskView, example: COMPLETED_TASK },
    errors: { conflict: 'task has an open question; answer or cancel it first' },
  })
  complete(@CallerParam() caller: Caller, @Param('id') id: string, @DeadlineParam() deadline: Deadline) {
    return this.tasks.complete(caller, id, deadline);
  }

  @Post(':id/sessions')
  @Contract({
    summary: 'Start a session on a task',
    description: "The reply holds the agent's token, which is shown this once.",
    tag: 'Sessions',
    access: ofTask,
    body: CreateSessionInput,
    bodyExample: { resume: { mode: 'pull' } },
    success: {
      status: 201,
      description: 'The session and its token',
      schema: CreatedSessionView,
      example: CREATED_SESSION,
    },
  })
  createSession(
    @CallerParam() caller: Caller,
    @Param('id') id: string,
    @Body() input: CreateSessionInput,
    @DeadlineParam() deadline: Deadline,
  ) {
    return this.sessions.create(caller, id, input, deadline);
  }

  @Get(':id/task-sessions')
  @Contract({
    summary: 'List the sessions of a task, each with its pending action',
    tag: 'Sessions',
    access: ofTask,
    success: { status: 200, description: 'Oldest first', schema: SessionListView, example: SESSIONS },
  })
  listSessions(@CallerParam() caller: Caller, @Param('id') id: string, @DeadlineParam() deadline: Deadline) {
    return this.sessions.listOfTask(caller, id, deadline);
  }
}
