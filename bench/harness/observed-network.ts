import { Connection } from '../../simulator/src/server/connection.ts'
import { Inboxes } from '../../simulator/src/server/inbox.ts'
import { monotonicMs } from './clock.ts'

/** The traffic of the simulated network in this process. Times are on the monotonic clock. */
export const observed = {
  /** Messages of clients that were acknowledged without an error. */
  acknowledged: 0,
  /** Whether times are recorded. */
  timed: false,
  /** When the first copy of a message was written to a client's socket, by WhatsApp's ID. */
  leftAt: new Map<string, number>(),
  /** When the first copy of a message was in a phone's inbox, by its text. */
  inInboxAt: new Map<string, number>(),
}

const write = Connection.prototype.write
Connection.prototype.write = function (stanza) {
  const { tag, attrs } = stanza
  if (tag === 'ack' && attrs['class'] === 'message' && attrs['error'] === undefined) observed.acknowledged += 1
  if (observed.timed && tag === 'message') note(observed.leftAt, attrs['id'])
  write.call(this, stanza)
}

const receive = Inboxes.prototype.receive
Inboxes.prototype.receive = function (number, message) {
  if (observed.timed) note(observed.inInboxAt, message.text)
  return receive.call(this, number, message)
}

function note(times: Map<string, number>, key: string | undefined): void {
  if (key !== undefined && !times.has(key)) times.set(key, monotonicMs())
}
