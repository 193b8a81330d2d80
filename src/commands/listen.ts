import { createInterface } from 'node:readline/promises'
import { parseArgs } from 'node:util'
import { readVersion } from '../program-files.ts'
import { Listener, ListenerStopped } from './listen/listener.ts'

/** `pombal listen`: posts an instance's events to a program on this machine. docs/feed.md describes how to use it. */

const USAGE = `usage: pombal listen --forward URL [--server URL] [--after CURSOR|latest|oldest] [--event KIND]

  --forward   where your program listens, for example http://localhost:3000/hook
  --server    the service (POMBAL_URL; default: http://127.0.0.1:3000)
  --after     begin after this cursor, with the next event (latest, the default) or with all that are kept (oldest)
  --event     only events of this kind, for example message.received

The token of the instance is read from POMBAL_TOKEN, or from the first line of the standard input.`

/** https://fetch.spec.whatwg.org/#port-blocking */
const BLOCKED_PORTS = new Set(
  (
    '0 1 7 9 11 13 15 17 19 20 21 22 23 25 37 42 43 53 69 77 79 87 95 101 102 103 104 109 110 111 113 115 117 119 123 135 137 139 143 ' +
    '161 179 389 427 465 512 513 514 515 526 530 531 532 540 548 554 556 563 587 601 636 989 990 993 995 1719 1720 1723 2049 3659 ' +
    '4045 4190 5060 5061 6000 6566 6665 6666 6667 6668 6669 6679 6697 10080'
  ).split(' '),
)

/** An argument or the token is missing or wrong. The message says how to correct it. */
class UsageError extends Error {
  override readonly name = 'UsageError'
}

function say(line: string): void {
  process.stdout.write(`${new Date().toTimeString().slice(0, 8)}  ${line}\n`)
}

function readUrl(name: string, text: string): URL {
  const url = URL.parse(text)
  if (url === null || !/^https?:$/.test(url.protocol))
    throw new UsageError(`${name} must be a URL that begins with http:// or https://.`)
  // `fetch` refuses both, whatever listens there.
  if (url.username !== '' || url.password !== '')
    throw new UsageError(`${name} must contain neither a user name nor a password.`)
  if (BLOCKED_PORTS.has(url.port))
    throw new UsageError(`${name} cannot use port ${url.port}, which is blocked for HTTP. Choose another port.`)
  return url
}

function parse() {
  const options = {
    forward: { type: 'string' },
    server: { type: 'string', default: process.env['POMBAL_URL'] ?? 'http://127.0.0.1:3000' },
    after: { type: 'string', default: 'latest' },
    event: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  } as const
  try {
    return parseArgs({ options }).values
  } catch (error) {
    throw new UsageError((error as Error).message, { cause: error })
  }
}

function readArguments() {
  if (process.argv.some(argument => argument.includes('pmb_'))) {
    throw new UsageError(
      'Do not pass the token as an argument, where other users of the machine can read it. Set POMBAL_TOKEN.',
    )
  }
  const values = parse()
  if (values.help) return null
  if (values.forward === undefined) throw new UsageError('--forward is missing: where does your program listen?')
  return {
    target: readUrl('--forward', values.forward),
    server: readUrl('--server', values.server),
    after: values.after,
    event: values.event,
  }
}

async function readToken(): Promise<string> {
  const given = process.env['POMBAL_TOKEN'] ?? (process.stdin.isTTY ? '' : await readFirstLine())
  const token = given.trim()
  if (token === '') throw new UsageError('There is no token. Set POMBAL_TOKEN, or write it to the standard input.')
  return token
}

async function readFirstLine(): Promise<string> {
  const lines = createInterface({ input: process.stdin })
  for await (const line of lines) {
    process.stdin.unref?.()
    return line
  }
  return ''
}

async function main(): Promise<void> {
  const given = readArguments()
  if (given === null) {
    process.stdout.write(`${USAGE}\n`)
    return
  }
  const version = readVersion()
  const stopped = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopped.abort())
  // Nobody reads the output any more, for example after `| head`.
  process.stdout.on('error', () => stopped.abort())
  const listener = new Listener({ ...given, token: await readToken(), version, say, signal: stopped.signal })
  try {
    await listener.run()
  } finally {
    if (/^\d/.test(listener.cursor)) say(`Stopped. To continue: --after ${listener.cursor}`)
  }
}

try {
  await main()
} catch (error) {
  if (error instanceof ListenerStopped) process.stderr.write(`${error.message}\n`)
  else if (error instanceof UsageError) process.stderr.write(`${error.message}\n\n${USAGE}\n`)
  else throw error
  process.exitCode = 1
}
