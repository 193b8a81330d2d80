import { type DestinationStream, destination } from 'pino'

/** Not kept longer than this, whatever the turn still brings. */
const MAX_KEPT_CHARACTERS = 65_536

/**
 * Lines of the log, written out together at the end of the turn of the event loop that logged them: a write for each costs
 * a busy service a tenth of its time. However the process ends by itself, an error that nobody caught included, every
 * line is out; a `kill -9` loses those of one turn.
 *
 * Synchronous: pino's default destination waits for ever, at exit, for a pipe that nobody reads any more.
 */
export function logDestination(fd: number): DestinationStream {
  const file = destination({ fd, sync: true, contentMode: 'buffer' })
  let kept = ''
  const writeOut = () => {
    const lines = kept
    kept = ''
    // As bytes, which its types do not know of: text would be measured, and encoded twice.
    if (lines !== '') file.write(Buffer.from(lines) as unknown as string)
  }
  process.on('exit', writeOut)
  return {
    write(line) {
      if (kept === '') setImmediate(writeOut)
      kept += line
      if (kept.length > MAX_KEPT_CHARACTERS) writeOut()
    },
  }
}
