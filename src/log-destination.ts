import type { DestinationStream } from 'pino'
import { LogFile } from './log-file.ts'

/** Written out within a turn of the event loop, if so much is logged in it. */
const MAX_GATHERED_CHARACTERS = 65_536

/**
 * Lines of the log, written out together at the end of the turn of the event loop that logged them: a write for each costs
 * a busy service a tenth of its time. However the process ends by itself, an error that nobody caught included, every
 * line is written that can be; a `kill -9` loses those of one turn. See `LogFile` for what happens when they cannot.
 */
export function logDestination(stream: NodeJS.WriteStream & { fd: number }): DestinationStream {
  const file = new LogFile(stream.fd)
  let gathered: string[] = []
  let characters = 0
  const writeOut = () => {
    if (gathered.length > 0) file.write(gathered)
    gathered = []
    characters = 0
  }
  process.on('exit', () => {
    writeOut()
    file.end()
  })
  return {
    write(line) {
      if (gathered.length === 0) setImmediate(writeOut)
      gathered.push(line)
      characters += line.length
      if (characters > MAX_GATHERED_CHARACTERS) writeOut()
    },
  }
}
