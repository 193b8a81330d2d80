import type { DestinationStream } from 'pino'
import { LogFile } from './log-file.ts'

/** More than this is written before the turn of the event loop ends. */
const MAX_BUFFERED_CHARACTERS = 65_536

/**
 * Writes the log lines of one turn of the event loop together, because one write per line takes a tenth of a busy service's
 * time. When the process exits, even by an uncaught error, the remaining lines are written. A `kill -9` loses the
 * lines of one turn. `LogFile` handles lines that cannot be written.
 */
export function logDestination(stream: NodeJS.WriteStream & { fd: number }): DestinationStream {
  const file = new LogFile(stream.fd)
  let lines: string[] = []
  let characters = 0
  const flush = () => {
    if (lines.length > 0) file.write(lines)
    lines = []
    characters = 0
  }
  process.on('exit', () => {
    flush()
    file.end()
  })
  return {
    write(line) {
      if (lines.length === 0) setImmediate(flush)
      lines.push(line)
      characters += line.length
      if (characters > MAX_BUFFERED_CHARACTERS) flush()
    },
  }
}
