export const DESCRIPTION = `Each event names in \`data\` its \`task_id\`, \`workspace_id\` and \`session_id\`, what it is about (\`message_id\`, \`turn_id\`,
\`state\` or \`pending_id\`), and the session's \`pending_action\` (null when nothing is open, left out when it could not be
told) with its \`pending_action_revision\`: of two, also of those that other routes give, the one with the lower
(epoch, sequence) is older. Only what the caller may see is told; an agent hears of its own session.

Types: \`session.message.added\`, \`session.message.updated\`, \`turn.started\`, \`turn.completed\`, \`session.state_changed\`,
\`clarification.requested\`, \`clarification.resolved\` (with \`status\`, \`actor\` and \`surface\`), \`clarification.restored\`,
\`clarification.detached\`, \`clarification.expired\`, \`clarification.cancelled\`, and \`resync\`.

Events are hints, the rows are the truth. Send the last id you had as \`Last-Event-ID\` and get what came after it; where that
is not known any more, also after a restart of the server, a \`resync\` comes first: read again whatever you show. A
client that reads too slowly is disconnected.`;

export const STREAMED = `: open
retry: 2000
id: 3-41

id: 3-42
event: clarification.requested
data: {"task_id":"01a2","workspace_id":"01a0","session_id":"01a3","pending_id":"dd18","pending_action":"clarification","pending_action_revision":{"epoch":3,"sequence":97}}

id: 3-43
event: clarification.resolved
data: {"task_id":"01a2","workspace_id":"01a0","session_id":"01a3","pending_id":"dd18","status":"answered","actor":"user:0199","surface":"rest","pending_action":null,"pending_action_revision":{"epoch":3,"sequence":98}}

`;
