import type { Settings } from './config.ts'
import type { RunnerOptions } from './instances/instance-runner.ts'
import type { Sandbox } from './sandbox/sandbox.ts'
import type { Lease } from './store/leases/leases.ts'
import type { ConnectionNetwork } from './whatsapp/connection/link-manager.ts'
import type { WhatsappThreads } from './whatsapp/threads/whatsapp-threads.ts'

const SANDBOX_OFF = 'Sandbox instances are switched off: start Pombal with SANDBOX=on.'

/** Connects instances to WhatsApp or to the sandbox. */
export function createConnector(
  settings: Settings,
  sandbox: Sandbox | null,
  threads: WhatsappThreads,
): RunnerOptions['connect'] {
  return async ({ kind }, lease, ends) => {
    const network = kind === 'sandbox' ? await openSandbox(sandbox, lease) : whatsappNetwork(settings)
    const connection = await threads.connect({ lease, network, ...ends })
    return {
      start: () => connection.start(),
      revoke: () => connection.revoke(),
      get isLinking() {
        return connection.isLinking
      },
      async stop(options) {
        await connection.stop(options)
        await sandbox?.leave(lease.instanceId)
      },
    }
  }
}

async function openSandbox(sandbox: Sandbox | null, lease: Lease): Promise<ConnectionNetwork> {
  if (!sandbox) return { kind: 'none', cause: 'sandbox_off', reason: SANDBOX_OFF }
  const { url, scanQr } = await sandbox.openNetwork(lease)
  return { kind: 'simulated', url, linkBy: scanQr }
}

function whatsappNetwork({ whatsapp: { url } }: Settings): ConnectionNetwork {
  return url ? { kind: 'simulated', url } : { kind: 'whatsapp' }
}
