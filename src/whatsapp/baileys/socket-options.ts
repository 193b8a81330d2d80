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
import { isLoopback } from './addresses.ts'
import type { createSignalRepository } from './signal/signal-repository.ts'

/** Where WhatsApp is: the real one, or a simulated network on loopback. */
export type Network =
  | { kind: 'whatsapp' }
  /** `linkBy`: the sandbox's phone scans its QR code by itself. */
  | { kind: 'simulated'; url: string; linkBy?: (qr: string) => Promise<unknown> }

/** An unanswered query holds up what asked for it; WhatsApp answers within a second or not at all. */
export const QUERY_TIMEOUT_MS = 15_000
const KEEP_ALIVE_MS = 25_000

export interface SocketParts {
  network: Network
  /** Of WhatsApp Web. Default: the one that ships with Baileys. */
  version?: [number, number, number] | undefined
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

/** Baileys' options; what is not said here is its default. */
export function socketOptions(parts: SocketParts): UserFacingSocketConfig {
  const { network, version, queryTimeoutMs = QUERY_TIMEOUT_MS, keepAliveMs = KEEP_ALIVE_MS, ...rest } = parts
  return {
    ...rest,
    // Pinned by the library's version; never fetched, so that a start depends on nothing outside.
    ...(version && { version }),
    ...(network.kind === 'simulated' && simulated(network.url)),
    // Shown on the phone's list of linked devices; pairing codes want a known platform. Constant per account.
    browser: Browsers.macOS('Chrome'),
    // Our own sends would come back as events and swallow the receipts that arrive in the same instant.
    emitOwnEvents: false,
    // Otherwise the phone stops notifying its owner.
    markOnlineOnConnect: false,
    syncFullHistory: false,
    // History is no event; but PUSH_NAME and INITIAL_BOOTSTRAP tell which LID is which number.
    shouldSyncHistoryMessage: ({ syncType }) =>
      syncType !== proto.HistorySync.HistorySyncType.FULL && syncType !== proto.HistorySync.HistorySyncType.RECENT,
    // Status broadcasts are received and dropped by us: refusing one can hold up the offline queue (Baileys 2779).
    shouldIgnoreJid: jid => isJidNewsletter(jid) === true,
    // Baileys would fetch the URLs in a text from our network; link-preview-js is not installed either.
    generateHighQualityLinkPreview: false,
    defaultQueryTimeoutMs: queryTimeoutMs,
    // Baileys would wait for each message that it cannot decrypt while those of all other contacts wait behind it.
    retryRequestDelayMs: 0,
    // For each frame sent Baileys would set a timer and take down three stacks. `watchHandshake` limits the connecting.
    connectTimeoutMs: 0,
    keepAliveIntervalMs: keepAliveMs,
    // Our key store repeats by itself and ends the socket when it fails.
    transactionOpts: { maxCommitRetries: 1, delayBetweenTriesMs: 0 },
  }
}

/** @throws TypeError for a host that is not loopback: over any other network the server must prove who it is */
function simulated(url: string): Partial<UserFacingSocketConfig> {
  const waWebSocketUrl = new URL(url)
  if (!isLoopback(waWebSocketUrl)) throw new TypeError('A simulated network must be on loopback.')
  return {
    waWebSocketUrl,
    // They carry flags of the real server's experiments and privacy settings; a simulator need not know them.
    fireInitQueries: false,
    ...(waWebSocketUrl.protocol === 'wss:' && { agent: new Agent({ rejectUnauthorized: false }) }),
  }
}
