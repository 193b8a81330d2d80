import { Agent } from 'node:https'
import {
  type AuthenticationState,
  Browsers,
  type CacheStore,
  type GroupMetadata,
  isJidNewsletter,
  type PossiblyExtendedCacheStore,
  proto,
  type UserFacingSocketConfig,
  type WAMessageKey,
} from 'baileys'
import type { ILogger } from 'baileys/lib/Utils/logger.js'
import type { PairingCode } from '../../domain/connection/connection.ts'
import { DEFAULT_LINKED_DEVICE, type LinkedDevice } from '../../domain/linked-device.ts'
import { fetchDispatcher } from '../../outbound/fetch-dispatcher.ts'
import type { InstanceProxy } from '../../outbound/proxy/instance-proxy.ts'
import { isLoopback } from './addresses.ts'
import type { createSignalRepository } from './signal/signal-repository.ts'

/** The real WhatsApp, or a simulated network on loopback. */
export type Network =
  | { kind: 'whatsapp' }
  /** `linkBy`: lets the sandbox's phone scan the QR code, or enter the pairing code if there is one. */
  | { kind: 'simulated'; url: string; linkBy?: (qr: string, pairing: PairingCode | null) => Promise<unknown> }

/** WhatsApp answers a query within a second or not at all. */
export const QUERY_TIMEOUT_MS = 15_000
const KEEP_ALIVE_MS = 25_000

/** With other names, WhatsApp refuses pairing codes. */
const BROWSERS: Readonly<Record<LinkedDevice, [string, string, string]>> = {
  'chrome-macos': Browsers.macOS('Chrome'),
  'chrome-windows': Browsers.windows('Chrome'),
  'chrome-ubuntu': Browsers.ubuntu('Chrome'),
  'edge-windows': Browsers.windows('Edge'),
  'firefox-macos': Browsers.macOS('Firefox'),
  'firefox-windows': Browsers.windows('Firefox'),
  'firefox-ubuntu': Browsers.ubuntu('Firefox'),
}

export interface SocketParts {
  network: Network
  /** All traffic to WhatsApp goes through this proxy. Default: no proxy. */
  proxy?: InstanceProxy | null | undefined
  /** The version of WhatsApp Web. Default: the one that ships with Baileys. */
  version?: [number, number, number] | undefined
  device?: LinkedDevice | undefined
  /** Default: 15 s. */
  queryTimeoutMs?: number | undefined
  /** Default: 25 s. */
  keepAliveMs?: number | undefined
  auth: AuthenticationState
  logger: ILogger
  makeSignalRepository(
    ...args: Parameters<UserFacingSocketConfig['makeSignalRepository'] & {}>
  ): ReturnType<typeof createSignalRepository>
  getMessage(key: WAMessageKey): Promise<proto.IMessage | undefined>
  cachedGroupMetadata(jid: string): Promise<GroupMetadata | undefined>
  userDevicesCache: PossiblyExtendedCacheStore
  msgRetryCounterCache: CacheStore
  placeholderResendCache: CacheStore
  callOfferCache: CacheStore
}

/** Baileys' options. All others keep their defaults. */
export function socketOptions(parts: SocketParts): UserFacingSocketConfig {
  const {
    network,
    proxy = null,
    version,
    device = DEFAULT_LINKED_DEVICE,
    queryTimeoutMs = QUERY_TIMEOUT_MS,
    keepAliveMs = KEEP_ALIVE_MS,
    ...rest
  } = parts
  return {
    ...rest,
    // The version is never fetched, so a start depends on no other server.
    ...(version && { version }),
    ...(network.kind === 'simulated' && simulated(network.url)),
    // Baileys fetches histories and parts of the app state with `fetch`, and handles no other message until it has one.
    options: { dispatcher: proxy?.dispatcher(network.kind === 'whatsapp') ?? fetchDispatcher() } as object,
    ...(proxy && through(proxy, network.kind === 'whatsapp')),
    // Announced at linking, and shown in the phone's list of linked devices. Pairing codes require a known platform.
    browser: BROWSERS[device],
    // Otherwise our own sends would be emitted as events, which hide receipts that arrive at the same time.
    emitOwnEvents: false,
    // Otherwise the phone shows no notifications.
    markOnlineOnConnect: false,
    syncFullHistory: false,
    // History causes no events, but PUSH_NAME and INITIAL_BOOTSTRAP contain pairs of LIDs and numbers.
    shouldSyncHistoryMessage: ({ syncType }) =>
      syncType !== proto.HistorySync.HistorySyncType.FULL && syncType !== proto.HistorySync.HistorySyncType.RECENT,
    // Statuses are decrypted and then dropped, because they contain keys. `acknowledgePlainly` drops posts of newsletters.
    shouldIgnoreJid: jid => isJidNewsletter(jid) === true,
    // With previews Baileys would fetch the URLs in a text from our network.
    generateHighQualityLinkPreview: false,
    defaultQueryTimeoutMs: queryTimeoutMs,
    // A delay would block the messages of all other contacts after each message that cannot be decrypted.
    retryRequestDelayMs: 0,
    // Off: Baileys would create a timer and three stack traces per frame. `watchHandshake` limits the time instead.
    connectTimeoutMs: 0,
    keepAliveIntervalMs: keepAliveMs,
    // Our key store retries by itself and ends the socket when it fails.
    transactionOpts: { maxCommitRetries: 1, delayBetweenTriesMs: 0 },
  }
}

function through(proxy: InstanceProxy, verifies: boolean): Partial<UserFacingSocketConfig> {
  const agent = proxy.agent(verifies)
  return { agent, fetchAgent: agent }
}

/** @throws TypeError for a host that is not loopback, because the server's certificate is not verified */
function simulated(url: string): Partial<UserFacingSocketConfig> {
  const waWebSocketUrl = new URL(url)
  if (!isLoopback(waWebSocketUrl)) throw new TypeError('A simulated network must be on loopback.')
  return {
    waWebSocketUrl,
    // These queries fetch experiment flags and privacy settings, which the simulator does not have.
    fireInitQueries: false,
    ...(waWebSocketUrl.protocol === 'wss:' && { agent: new Agent({ rejectUnauthorized: false }) }),
  }
}
