import type { ConnectionCause } from '../../domain/connection/connection.ts'
import type { LinkedDevice } from '../../domain/linked-device.ts'
import type { AddressPolicy } from '../../outbound/address-guard.ts'
import type { Network } from '../baileys/socket-options.ts'

/** The server that Baileys connects to. It is stated here because the main thread does not load Baileys. */
export const WHATSAPP_SERVER = 'wss://web.whatsapp.com/ws/chat'

/** `none`: this node cannot connect the instance. The operator can fix the reason. */
export type ConnectionNetwork = Network | { kind: 'none'; cause: ConnectionCause; reason: string }

export interface ConnectionSettings {
  /** Version of WhatsApp Web. Default: the one that ships with the driver. */
  version?: [number, number, number]
  device?: LinkedDevice
  /** Whether a number can be linked with a passkey. Default: false. */
  passkeys?: boolean
  messageTtlMs: number
  ackTimeoutMs?: number
  /** How long to wait for WhatsApp's answer to a query. Default: 15 s. */
  queryTimeoutMs?: number
  /**
   * Interval of the keep-alive query. Default: 25 s. At each interval, Baileys ends the socket if it has received
   * nothing for the length of the interval and 5 s more.
   */
  keepAliveMs?: number
  /** The addresses that proxies may have. Default: public addresses only. */
  proxyAddresses?: AddressPolicy
}
