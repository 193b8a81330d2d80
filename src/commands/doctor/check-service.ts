import { get, type IncomingMessage } from 'node:http'
import { connect } from 'node:net'
import { json } from 'node:stream/consumers'
import type { Settings } from '../../config.ts'

const ANSWER_WITHIN_MS = 5_000
/** By the address that stands for every address. */
const LOOPBACK: Readonly<Record<string, string>> = { '0.0.0.0': '127.0.0.1', '::': '[::1]' }

interface ServiceFound {
  state: 'ready' | 'not_ready' | 'foreign' | 'stopped'
  /** A sentence for the operator. */
  text: string
}

/** Asks the service on this machine, at the address in its settings, whether it is ready. */
export async function checkService({ host, port }: Pick<Settings, 'host' | 'port'>): Promise<ServiceFound> {
  const name = LOOPBACK[host] ?? (host.includes(':') ? `[${host}]` : host)
  const url = `http://${name}:${port}`
  try {
    const answer = await getPage(`${url}/readyz`)
    const { status, error } = ((await json(answer)) ?? {}) as { status?: unknown; error?: { code?: unknown } }
    if (answer.statusCode === 200 && status === 'ready')
      return { state: 'ready', text: `The service at ${url} is ready.` }
    if (error?.code === 'service_unavailable')
      return {
        state: 'not_ready',
        text: `The service at ${url} runs, but is not ready: it is stopping, or the database refuses writes.`,
      }
  } catch (error) {
    if (!(error instanceof SyntaxError)) return { state: 'stopped', text: `No service answers at ${url}.` }
  }
  return { state: 'foreign', text: `Another program uses ${url}: set PORT to a free port.` }
}

/** Not by `fetch`, which refuses some ports, such as 6000. A service behind a proxy may listen there. */
function getPage(url: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    get(url, { agent: false, signal: AbortSignal.timeout(ANSWER_WITHIN_MS) }, resolve).once('error', reject)
  })
}

/** Whether a program listens on the port. Binds nothing, because a service may be starting. */
export function isPortTaken(host: string, port: number): Promise<boolean> {
  const name = (LOOPBACK[host] ?? host).replaceAll(/[[\]]/g, '')
  return new Promise(resolve => {
    const socket = connect({ host: name, port, timeout: ANSWER_WITHIN_MS })
    const end = (isTaken: boolean) => {
      socket.destroy()
      resolve(isTaken)
    }
    socket.once('connect', () => end(true))
    for (const event of ['error', 'timeout']) socket.once(event, () => end(false))
  })
}
