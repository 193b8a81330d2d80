import { Connection } from '../../simulator/src/connection.ts'

/** What the simulated network of this process has sent so far. */
export const observed = {
  /** Messages of clients that were acknowledged without an error. */
  acknowledged: 0,
}

const write = Connection.prototype.write
Connection.prototype.write = function (stanza) {
  const { tag, attrs } = stanza
  if (tag === 'ack' && attrs['class'] === 'message' && attrs['error'] === undefined) observed.acknowledged += 1
  write.call(this, stanza)
}
