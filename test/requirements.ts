/**
 * What this product promises, each with the id by which tests cite it. A test cites a rule by having its id as a
 * whole word in its title, or in that of a `describe` around it. `requirements.spec.ts` fails when a rule is cited
 * by no test.
 */
export const REQUIREMENTS: Readonly<Record<string, string>> = {
  // The claim
  P1: 'One claim mechanism: nothing else writes answered or rejected, and nothing beside the rows records who won.',
  P1a: 'A claim is answered with one normalised entry per question, or rejected with none; any other status is refused.',
  P1b: 'What is claimed is the normalised answer, because that is what later callers are told.',
  P2: 'Only the claim’s own predicate, inside its transaction, decides whether a bundle is active.',
  X: 'Cancelling turns the pending rows of an active bundle to cancelled in one transaction; anything else is not_active.',

  // Whose bundle it is
  M5: 'A bundle’s task is the one its rows name, or its session’s where a row names none.',
  M5a: 'A bundle without a task, or of several, is not found when scoped and answerable when unscoped; without one it is listed for nobody.',

  // Order and boundaries
  D1: 'A bundle was created when its earliest row was.',
  D2: 'Questions are ordered by index, then creation, then row id; an unreadable index is 0.',
  D4: 'Active is one predicate: a pending row, the current turn, a session that is not terminal, and not malformed.',
  D5: 'A task without a workspace is visible to every authenticated caller.',
  D6: 'Paging goes by key: what becomes inactive between pages disappears and nothing else is skipped or repeated.',
  D7: 'The age of a bundle is in whole seconds of the server’s clock and never below 0.',

  // Outcomes
  R1: 'The caller whose claim won delivers, and nobody else does.',
  R2: 'Whoever comes after a winner is told the winner’s decision; without a winner the bundle is not_active.',
  R2a: 'A claim that was not won re-reads the rows once and does not try again.',
  R2b: 'The winner’s answer is rebuilt from the rows; the first resolved row decides, and a replay has no reason.',
  R2c: 'A malformed submission to a resolved bundle gets its 400, not the winner’s answer.',
  R3: 'Of concurrent callers over any mix of surfaces exactly one wins and the others get its answer.',
  R4: 'The claim is committed before anything is delivered or published.',
  R4a: 'A claim that fails is a 500 without retry, but an unknown commit is settled by what the rows say.',
  R6: 'Everything works after a restart as before it: nothing in memory decides an outcome.',
  R9: 'A rejection looks the same to the agent, whoever made it.',
  R10: 'Responding over REST has one status and body for each outcome.',
  R12: 'A response always has all of its fields, empty rather than null, in the same bytes for winner and losers.',

  // Authorization
  A1: 'Responding needs access to the bundle’s task.',
  A2: 'Reading, waiting for and cancelling a bundle need access to its task.',
  A3: 'Denied and unknown give one 404, the same to the byte, before validation and before memory is looked at.',
  A4: 'An unscoped caller is authorised for every bundle.',
  A5: 'A denial is a not-found, never a 403.',
  A8: 'The task comes from the durable rows; a task id sent along with an answer is ignored.',
  ACCESS:
    'A task is accessible when its workspace is none, dangling, unowned or the caller’s; everything in it follows.',
  AGENT: 'An agent reaches its own session and nothing else, and never lists, responds or sets states.',

  // Answering and normalising
  N3a: 'Equal decisions give equal bytes: entries and options in the questions’ order, once each, texts trimmed.',
  N4: 'Over MCP a caller that lost gets a normal result with claimed false.',
  N4a: 'Over MCP an inactive bundle is an error that says so and differs from not found.',
  N5: 'Over MCP foreign and missing bundles have the same text.',
  N6: 'Answers have exactly one entry per question: wrong count, unknown, empty and repeated ids are errors.',
  N6a: 'One answer is expected for each row.',
  N7: 'An entry may hold options, text, both or neither, and neither reads "(no answer)".',
  N8: 'Every selected option exists on its question, and how many there are is free.',
  N8a: 'A rejection with answers is an error, and rejected false without answers is a wrong count.',
  N8b: 'Reasons and texts have at most 2000 code points before trimming.',
  N8c: 'Validation comes before the claim and writes nothing.',
  N8d: 'A refusal names the field it is about.',
  'BAD-TYPES':
    'Wrong types, junk and too large bodies are 400 or 413 naming the field on both surfaces and write nothing.',
  'BAD-TEXT': 'U+0000 and lone surrogates are refused in every stored text on both databases.',

  // Listing
  L1: 'The listing has every active bundle that the caller may see and no other.',
  L1c: 'Visible is exactly what authorization allows, decided inside the query.',
  L2: 'The listing comes from the durable rows.',
  L3: 'A listed bundle has its ids, creation, age, context and questions.',
  L4: 'A listed question has its id, title, prompt, status and options.',
  L4a: 'Nothing listed is null or missing: unknown texts and lists are empty, an absent status is pending.',
  L6: 'Bundles are listed by creation, then by pending id.',
  L7: 'workspace_id only narrows what is visible anyway.',
  L8: 'created_since is an RFC 3339 date-time and includes its own instant.',
  L9: 'The cursor is opaque, next_cursor is empty at the end, and an empty filter or cursor counts as not given.',
  L10: 'limit counts bundles: 50 by default, 200 at most, not an integer is an error.',
  L11: 'A page says how many bundles it holds, and no grand total.',
  L12: 'A bundle with some terminal rows is listed and answered; those rows stay as they are.',
  L13: 'An unreadable created_since or cursor is an error that names it.',
  L14: 'created_since and cursor may be given together.',
  L15: 'A question that cannot be read is listed empty and can be answered by text or rejected.',
  L16: 'A bundle with a row that has no question id is not listed, and any outcome for it is a 400 that says so.',
  'ODD-ROWS':
    'Metadata that is JSON of an unexpected kind breaks nobody’s request; what is not JSON cannot be written.',

  // Tasks
  T: 'Each listed task has its two pending-action fields, from the one predicate.',

  // Data
  TABLES: 'The set of tables is exactly the documented one, and none of them records claims.',
  TIME: 'Instants have milliseconds on both databases and survive a round trip through a cursor.',
  'META-KEYS': 'A clarification’s metadata has the documented keys in a fixed order and no other of ours.',
  'PENDING-ID': 'A pending id cannot be guessed and compares bytewise on both databases.',

  // Errors and the order of checks
  ERRORS: 'Every error is a sentence and a stable code with its status, on every surface.',
  'ERROR-INTERNAL': 'An internal error shows a request id and neither stack nor SQL.',
  'UNKNOWN-FIELDS': 'Unknown fields are errors that name the field in every body, query and tool call.',
  ORDER: 'Checks come in one order: 401, unreadable body, 403, 404, 400, 409.',
  AUTH: 'With auth enforced a token is needed first of all; with auth off one that is sent still counts and can fail.',
  'HOST-ORIGIN': 'Foreign Host or Origin is refused and bodies must be JSON, in both auth modes.',
  'RATE-LIMIT':
    'Each token, and each address, has a budget of requests a minute; guessing tokens spends its own and starves no good one.',
  'HELD-LIMIT':
    'Waits and streams are bounded by caller, by address and over all, and a refusal says when to come back.',
  'SLOW-PEERS':
    'Who is slow to send, or takes nothing of what is sent, is cut in bounded time; waits and streams are not, however long they last.',
  'FAIL-CLOSED': 'When activeness cannot be read, guards refuse and lists fail instead of showing nothing pending.',

  // Workspaces, tasks, sessions, turns, messages
  WORKSPACES: 'A workspace belongs to whoever made it and is listed for those who see it.',
  TASKS: 'Tasks are made in accessible workspaces, listed by page, read and deleted.',
  'WORKFLOW-GUARD': 'A task with an active bundle cannot be completed.',
  SESSIONS: 'A task has one primary session; the agent’s token is shown once and a new one ends the old.',
  'SESSION-STATES': 'Terminal states are final and entering one expires the session’s active bundles.',
  TURNS: 'Turns are opened, listed oldest first and completed; reservations are hidden.',
  'PENDING-ACTION': 'Sessions carry their pending action and a revision that orders reads.',
  MESSAGES: 'Messages are listed by page and appended; an agent’s own never opens a turn.',
  QUEUE:
    'Prompts wait for a running turn, an open question or a hand-over under way, and are released one a turn in order.',
  'MESSAGE-ID': 'A client_message_id admits its message once, and other content under it is a conflict.',
  MAILBOX: 'The mailbox gives the next waiting turn, again and again until it is acknowledged.',

  // Creating a bundle
  'CREATE-COUNT': 'A bundle has one to four questions with a prompt and two to six labelled options each.',
  'CREATE-IDS': 'Ids are assigned by position or given, well-formed, unique and not reserved.',
  'CREATE-SIZES': 'Every text has a stated bound in code points, and a longer one is an error naming its field.',
  'CREATE-SESSION': 'The session exists, is accessible and not terminal, and its task and first turn are used.',
  'CREATE-DEDUP': 'The same questions and context in the same turn are one bundle, also at the same instant.',
  RESUME: 'Resume settings are validated, and a mode that is not offered is a clear 400.',
  DETAIL: 'A bundle is read from its rows with its status, activeness, delivery and response.',

  // MCP
  'MCP-SURFACES': 'Each MCP surface has exactly its own tools.',
  'MCP-TOOLS': 'Tools describe themselves with closed schemas and annotations and return structured content and text.',
  'MCP-ERRORS':
    'A failed call is a tool result with code and sentence; only bad JSON-RPC and unknown tools are protocol errors.',
  'MCP-SESSION': 'An unknown MCP session is 404 and a known one works only for the identity that opened it.',
  'MCP-REVOKED': 'Revoking or expiring a token ends its waits and streams.',
  'MCP-GONE': 'A client that goes away frees its waiter; the question stays and asking the same again rejoins it.',
  'MCP-STREAM': 'The first byte comes at once, comments keep proxies from closing, and buffering is off.',
  'ASK-RESULT': 'The agent gets its answers by question id with labels, or the rejection and its reason.',
  'ASK-CONTEXT': 'Context paragraphs replace the context, joined by blank lines.',
  'WAIT-TOOL': 'wait_for_answer gives the same result for a bundle of the own session, also after a restart.',
  HOLD: 'A call is held with rising progress, or returns pending with what to do next, never with an error.',

  // Sessions and turns of an agent
  'CURRENT-TURN':
    'The current turn is the newest authoritative one by time and id, flags read alike on both databases.',
  'TURN-TIME': 'A new turn starts after the newest one, whatever the clock says.',
  'OPEN-TURN': 'Opening a turn completes its predecessor, and waiting and taking over move the session’s state.',
  SUPERSEDE: 'A newer turn makes older pending bundles history without rewriting them.',
  EXPIRE: 'A terminal session expires the current turn’s pending rows in the same transaction.',
  DETACH: 'When the last agent stops waiting, or the turn completes, the bundle is detached once and stays answerable.',
  REATTACH: 'A wait that comes back attaches the bundle again.',
  ISOLATION: 'Cancelling, expiring or resolving one bundle touches no other.',
  SERIAL: 'Writes that depend on a session’s turn or state are serialised per session.',

  // Waiting
  'WAIT-RESOLVED': 'Waiting for what is resolved and handed over answers at once, also after a restart.',
  'WAIT-UNSETTLED': 'Waiting while a hand-over is not settled joins it, or blocks until it is.',
  'WAIT-ACTIVE': 'Waiting for an active bundle blocks until it is resolved or the time-out, which is wait_timeout.',
  'WAIT-INACTIVE': 'Waiting for what can no longer be answered is not_active at once, and for what was deleted 404.',
  'WAIT-OBSERVER': 'Only the session’s agent makes a bundle live; others may wait and only observe.',
  'WAIT-ACK': 'A wait that meets an answer already in a new turn names the turn and acknowledges its mailbox entry.',
  'WAIT-REASON': 'A live waiter gets the real reason of a rejection, which also stays as a message.',
  'WAIT-REATTACH': 'An answer waits a while for an agent whose wait has just ended before a new turn is opened.',

  // Handing over
  'HANDOVER-WAITER':
    'A waiter confirms durably before it returns the response; if that fails the bundle is answerable again.',
  'HANDOVER-LOST': 'When every agent’s connection closed before the response was out, the answer opens a new turn.',
  'HANDOVER-REJECTION': 'A rejection nobody waits for is settled without resuming the agent.',
  'HANDOVER-PULL': 'An answer nobody waits for becomes one new turn in the mailbox, in one transaction.',
  'WEBHOOK-SIGNED':
    'A webhook gets exactly the bytes of the call, signed by the Standard Webhooks scheme, under its id.',
  'WEBHOOK-RESULT':
    'A call is accepted by a 2xx, not delivered by another status or when it was not sent whole, else unknown.',
  'HANDOVER-WEBHOOK':
    'In webhook mode an answer reserves a turn, marks it attempted, calls the agent, and is published once accepted.',
  'HANDOVER-REFUSED': 'A call that is known not to have arrived takes the reservation back and restores the rows.',
  'HANDOVER-UNKNOWN':
    'A call without a reply leaves the answer terminal, in the mailbox as well, and sent again until accepted.',
  'RESERVATION-BARRIER': 'While a turn is reserved no other opens: POST turns waits for it, prompts are queued.',
  'TURN-PROMPTED': 'A prompt that the agent did not send itself reaches it through its webhook, again until accepted.',
  'WEBHOOK-GUARD': 'No connection is opened to an address that is not public, however it is written or resolved.',
  'WEBHOOK-SETTINGS':
    'Resume settings are checked field by field; a secret is shown once, when it is made, and never again.',
  'HANDOVER-FORBIDDEN': 'Where restoring is forbidden the answer stays as history and the responder is told so.',
  RESTORE: 'Restoring gives back exactly the claimed rows as they were before the claim.',
  PROMPT: 'The prompt of a resumed agent names every question with chosen labels and ids and the text.',

  // Events
  EVENTS:
    'What was committed is told in order, by ids and states and without text; a resolution once it is handed over.',
  'EVENTS-REVISION':
    'An event has its session’s pending action, left out if unread, and a revision in one order with REST’s.',
  'EVENTS-WHO': 'An event is told to whoever may see its task, and to its session’s own agent.',
  'EVENTS-REPLAY': 'Who connects again gets what was missed, or a resync first where that is not known any more.',
  'EVENTS-OPEN':
    'A stream is kept open by heartbeats, ends with its token or the server, and is dropped if nobody reads it.',

  // Recovery and operation
  'RECOVER-INTENTS': 'At start, claims that were not handed over become answerable again where that is allowed.',
  'RECOVER-RESERVATIONS':
    'At start and once a minute, a reservation left behind is withdrawn if nobody was called, else published and sent.',
  'RECOVER-MALFORMED':
    'A reservation that does not say what it was for fails the start, names the turn, changes nothing.',
  'RECOVER-ORDER': 'Requests are admitted only after recovery, and a start that fails exits with one clear line.',
  KILL: 'Killed at any step, a bundle is answerable or resolved and handed over, never lost and never twice.',
  'KILL-RECOVERY': 'Killed while it recovers, the next start ends where an undisturbed one would have.',
  'KILL-SWITCH': 'Nothing that is shipped can be told to die or to fail at a step.',
  SHUTDOWN: 'Shutting down finishes what has begun, ends holds with pending and exits 0.',
  LOCK: 'A second server on the same database is refused.',
  INDEX: 'The ordered pending-id index is made on old and new databases and verified; without it there is no start.',
  PLAN: 'Look-ups by pending id use the index on both databases and never scan the table.',
  BUDGET: 'Before the claim everything takes at most its budget, then 503 with nothing changed and nothing leaked.',
  'BUDGET-COMMIT': 'A commit that has been sent is awaited, whatever the budget says.',
  'GROUP-COMMIT':
    'Works that share a COMMIT are told of their outcome after it, and none changes the outcome of another.',
  'CALLER-GONE': 'For a caller that left before the claim no claim is made; leaving after it changes nothing.',
  HEALTH: 'Readiness is true only while requests are admitted and the database is within reach.',
  'DATABASE-AWAY': 'A dropped database connection is a 503, never half a bundle, and everything works again by itself.',
  METRICS:
    'Metrics show how answers fare, who waits, what waits for the database and what is owed, and no id is a label.',
  'PHASE-RECORDS':
    'Each phase of a response has one record of its outcome and duration, and a spent budget is counted.',
  FUZZ: 'Requests of every kind to every route and tool: never a 5xx, a hang or a leak, and each reply as published.',
  DOCS: 'The OpenAPI document is complete, with errors and examples, and true of every response.',
  DEMO: 'The demo plays the whole main job and exits 1 when any step fails.',
  CONFIG: 'Each setting has its default, and an invalid one stops the start with a line that names it.',
  LOOPBACK: 'Without auth the server refuses to listen on anything but the loopback address.',
  'RECOVER-COMMANDS':
    'With the server stopped, an operator sees what is to be recovered, and can let go of a reservation.',
  'START-LINE': 'The start prints the URL, the database without credentials and the auth mode in one line.',
  'FILE-MODE': 'Data files are made readable to their owner alone.',
  'NO-SECRETS': 'No token, secret, question or answer is in a log at info or above.',
  BACKUP: 'A backup is one committed state, and a server that starts on it recovers as after a crash.',
  OPERATIONS: 'The operations document names every log record, every metric and every reason for which a start fails.',
  'REQUEST-ID': 'Every record of a request and every internal error names the request.',
  CLI: 'The operator’s commands work beside the running server; bad input is one line and exit 2.',
  PACKAGE: 'The npm package is what runs and nothing else; its command is the server, with arguments the command line.',
  IMAGE: 'The image serves as an ordinary user, gets signals itself, tells of its health and demands tokens.',
  COMPOSE: 'The compose file names settings that exist, publishes to its own machine, and holds no password.',
  UNIT: 'The systemd unit runs the package’s command as a user of its own and waits longer than a stop may take.',
};
