import type { BinaryNode, GroupMetadata } from 'baileys'
import type { Logger } from 'pino'
import type { GroupDetails } from '../../../domain/recipients/group.ts'
import type { SentMessage } from '../../../store/messages/messages.ts'
import type { LibraryCaches } from '../library-caches.ts'
import { toMetadata } from '../parsing/group.ts'
import type { DeviceCache } from '../recipient-devices.ts'
import type { CredentialStore } from '../signal/credential-store.ts'
import type { RetryBudgets } from '../signal/retry-requests.ts'
import type { SocketParts } from '../socket-options.ts'
import type { LinkEvents } from './events.ts'

export interface LinkOptions
  extends Pick<SocketParts, 'network' | 'proxy' | 'version' | 'device' | 'queryTimeoutMs' | 'keepAliveMs'> {
  credentials: CredentialStore
  /** Whether a number can be linked with a passkey. */
  passkeys?: boolean | undefined
  devices: DeviceCache
  caches: LibraryCaches
  retryBudgets: RetryBudgets
  /** Called before each frame. False once another node may own the account. By default always true. */
  mayAct?: (() => boolean) | undefined
  /** The group as it is known without a query. */
  findGroup(group: string): Promise<GroupDetails | null>
  /** Asks WhatsApp about the group, unless it was asked a moment ago. Also resolves if WhatsApp gives no answer. */
  refreshGroup(group: string): Promise<void>
  findSent(whatsappId: string): Promise<SentMessage | null>
  events: LinkEvents
  /** For diagnosis: called with every stanza from WhatsApp before it is handled. */
  onStanza?: (stanza: BinaryNode) => void
  logger: Logger
}

/** The group in the form that Baileys uses. */
export async function findMetadata(
  { findGroup }: Pick<LinkOptions, 'findGroup'>,
  group: string,
): Promise<GroupMetadata | undefined> {
  const known = await findGroup(group)
  return known === null ? undefined : toMetadata(known)
}
