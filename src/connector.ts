import type { Settings } from './config.ts'
import { Refusal } from './domain/refusal.ts'
import type { RunnerOptions } from './instances/instance-runner.ts'
import type { AddressPolicy } from './outbound/address-guard.ts'
import { createProxies } from './outbound/proxy/proxies.ts'
import { PROXY_FAILURES } from './outbound/proxy/proxy-failed.ts'
import type { Sandbox } from './sandbox/sandbox.ts'
import type { Lease } from './store/leases/leases.ts'
import {
  type ConnectionNetwork,
  type ConnectionSettings,
  WHATSAPP_SERVER,
} from './whatsapp/connection/connection-settings.ts'
import type { WhatsappThreads } from './whatsapp/threads/whatsapp-threads.ts'

const SANDBOX_OFF = 'Sandbox instances are switched off: start Pombal with SANDBOX=on.'

/** Connects instances to WhatsApp or to the sandbox. */
export function createConnector(
  settings: Settings,
  sandbox: Sandbox | null,
  threads: WhatsappThreads,
): RunnerOptions['connect'] {
  return async ({ kind }, lease, ends) => {
    const network = kind === 'sandbox' ? await openSandbox(sandbox, lease, ends.onCrashed) : whatsappNetwork(settings)
    const connection = await threads.connect({ lease, network, ...ends }).catch(async error => {
      await sandbox?.leave(lease.instanceId)
      throw error
    })
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

async function openSandbox(sandbox: Sandbox | null, lease: Lease, onMoved: () => void): Promise<ConnectionNetwork> {
  if (!sandbox) return { kind: 'none', cause: 'sandbox_off', reason: SANDBOX_OFF }
  const { url, linkBy } = await sandbox.openNetwork(lease, onMoved)
  return { kind: 'simulated', url, linkBy }
}

function whatsappNetwork({ whatsapp: { url } }: Settings): ConnectionNetwork {
  return url ? { kind: 'simulated', url } : { kind: 'whatsapp' }
}

/** The settings of the connections to WhatsApp. */
export function connectionSettings(settings: Settings): ConnectionSettings {
  const { version, device, passkeys } = settings.whatsapp
  return {
    ...(version && { version }),
    device,
    passkeys,
    messageTtlMs: settings.messageTtlMs,
    proxyAddresses: proxyAddresses(settings),
  }
}

/** Tests proxies before they are used. */
export function createProxyCheck(settings: Settings): (url: string, instanceId: string) => Promise<void> {
  const open = createProxies(proxyAddresses(settings))
  const { url: simulated } = settings.whatsapp
  return async (url, instanceId) => {
    const failure = await open(url, instanceId).probe(new URL(simulated ?? WHATSAPP_SERVER), simulated === null)
    if (failure === null) return
    if (failure === 'no_answer' || failure === 'PROXY_REFUSED') throw new Refusal('proxy_without_whatsapp')
    if (failure === 'PROXY_LOGIN') throw new Refusal('proxy_login_refused')
    if (failure === 'PROXY_BLOCKED') throw new Refusal('invalid_request', PROXY_FAILURES[failure])
    throw new Refusal('proxy_unreachable', PROXY_FAILURES[failure])
  }
}

function proxyAddresses({ webhook, proxyNetworks, port, metricsPort }: Settings): AddressPolicy {
  return {
    loopbackAndPrivateAllowed: webhook.privateAllowed,
    allowedNetworks: proxyNetworks,
    ownPorts: metricsPort === null ? [port] : [port, metricsPort],
  }
}
