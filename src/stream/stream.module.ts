import { Module } from '@nestjs/common';
import { EventsModule } from '../events/events.module.js';
import { TasksModule } from '../tasks/tasks.module.js';
import { EventFeed } from './event-feed.js';
import { EventStreams } from './event-streams.js';
import { EventsController } from './http/events.controller.js';
import { StreamSettings } from './stream-settings.js';

/** What has happened, told to callers who may see it, as it happens. */
@Module({
  imports: [EventsModule, TasksModule],
  controllers: [EventsController],
  providers: [EventFeed, EventStreams, StreamSettings],
})
export class StreamModule {}
