import { writeFile } from 'node:fs/promises'
import { flushCompileCache } from 'node:module'
import { parseArgs } from 'node:util'
import { createControl } from './control.ts'
import { createSimulator } from './simulator.ts'

const USAGE = `usage: simulator [--port 8080] [--host 127.0.0.1] [--claimed-pre-keys 0] [--latency 0] [--tls]
                 [--media-port 0] [--media-folder <folder>] [--certificate <file>]`

function readSettings() {
  const { values } = parseArgs({
    options: {
      port: { type: 'string', default: '8080' },
      host: { type: 'string', default: '127.0.0.1' },
      'claimed-pre-keys': { type: 'string', default: '0' },
      latency: { type: 'string', default: '0' },
      tls: { type: 'boolean', default: false },
      'media-port': { type: 'string', default: '0' },
      'media-folder': { type: 'string' },
      certificate: { type: 'string' },
    },
  })
  const port = portIn('--port', values.port)
  const mediaPort = portIn('--media-port', values['media-port'])
  const claimedPreKeys = Number(values['claimed-pre-keys'])
  if (!Number.isInteger(claimedPreKeys) || claimedPreKeys < 0) throw new Error('--claimed-pre-keys must be 0 or more')
  const latencyMs = Number(values.latency)
  if (!Number.isInteger(latencyMs) || latencyMs < 0) throw new Error('--latency must be 0 or more milliseconds')
  const { host, tls, certificate, 'media-folder': mediaFolder } = values
  return {
    certificate,
    options: { port, mediaPort, host, claimedPreKeys, latencyMs, tls, ...(mediaFolder && { mediaFolder }) },
  }
}

function portIn(option: string, text: string): number {
  const port = Number(text)
  if (!Number.isInteger(port) || port < 0 || port > 65_535) throw new Error(`${option} ${text} is not a port`)
  return port
}

async function main(): Promise<void> {
  const log = (line: string) => console.error(line)
  const { options, certificate } = readSettings()
  const simulator = await createSimulator(
    { ...options, syncsAfterLinking: true, readsForClients: false, log },
    createControl(),
  )
  for (const signal of ['SIGINT', 'SIGTERM'] as const) {
    process.once(signal, () => void simulator.close())
  }
  // For NODE_COMPILE_CACHE: a process that is killed writes nothing at its end.
  flushCompileCache()
  const { media } = simulator
  if (certificate !== undefined) await writeFile(certificate, media.certificate)
  console.log(`media host at https://${media.hosts[0]}`)
  console.log(`simulated WhatsApp at ${simulator.url}`)
}

main().catch(error => {
  console.error(error instanceof Error ? error.message : error)
  console.error(USAGE)
  process.exitCode = 1
})
