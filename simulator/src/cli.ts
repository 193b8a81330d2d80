import { flushCompileCache } from 'node:module'
import { parseArgs } from 'node:util'
import { createControl } from './control.ts'
import { createSimulator } from './simulator.ts'

const USAGE = 'usage: simulator [--port 8080] [--host 127.0.0.1] [--claimed-pre-keys 0] [--tls]'

function readSettings() {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '8080' },
      host: { type: 'string', default: '127.0.0.1' },
      'claimed-pre-keys': { type: 'string', default: '0' },
      tls: { type: 'boolean', default: false },
    },
  })
  const port = Number(values.port)
  const claimedPreKeys = Number(values['claimed-pre-keys'])
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`--port ${values.port} is not a port`)
  if (!Number.isInteger(claimedPreKeys) || claimedPreKeys < 0) throw new Error('--claimed-pre-keys must be 0 or more')
  return { port, host: values.host, claimedPreKeys, tls: values.tls }
}

async function main(): Promise<void> {
  const log = (line: string) => console.error(line)
  const simulator = await createSimulator({ ...readSettings(), log }, createControl())
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void simulator.close())
  }
  // For NODE_COMPILE_CACHE: a process that is killed writes nothing at its end.
  flushCompileCache()
  console.log(`simulated WhatsApp at ${simulator.url}`)
}

main().catch(error => {
  console.error(error instanceof Error ? error.message : error)
  console.error(USAGE)
  process.exitCode = 1
})
