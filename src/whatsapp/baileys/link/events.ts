import type { IncomingCall } from '../../../domain/connection/incoming-call.ts'
import type { RestrictionNotice } from '../../../domain/connection/restriction.ts'
import type { IncomingChange, IncomingMessage } from '../../../domain/incoming-message.ts'
import type { HeardContact } from '../../../domain/recipients/contact.ts'
import type { GroupChange, GroupDetails, GroupNotice } from '../../../domain/recipients/group.ts'
import type { LinkEnd } from '../link-end.ts'
import type { SentReceipt } from '../parsing/receipt.ts'
import type { CeremonyStep } from './passkey-ceremony.ts'

/** The events that a link reports to its connection. */
export interface LinkEvents extends VitalSigns {
  /** A new QR code, which replaces the previous code. */
  qr(text: string): void
  /** WhatsApp wants a new code: this QR code. Null: another pairing code must be requested. */
  newCode(qr: string | null): void
  /** A person has to answer WhatsApp. */
  passkey(step: CeremonyStep): void
  /** A phone has linked this device. WhatsApp requests a new socket next. */
  paired(): void
  opened(): void
  /** The link ended by itself. This is its last event: buffered events are emitted earlier. */
  closed(end: LinkEnd): void
  acknowledged(ack: Acknowledgement): void
  /** The receipt is acknowledged to WhatsApp once this resolves. If it rejects, WhatsApp delivers the receipt again. */
  receipt(receipt: SentReceipt): Promise<void>
  /** The message is acknowledged to WhatsApp once this resolves. If it rejects, WhatsApp delivers the message again. */
  received(message: IncomingMessage | IncomingChange): Promise<void>
  /** True if the message is recorded already. Its content does not matter. */
  isRecorded(message: IncomingMessage | IncomingChange): Promise<boolean>
  /**
   * The call is acknowledged to WhatsApp once this resolves. If it rejects, WhatsApp reports the call again.
   * @returns whether the call is to be rejected
   */
  called(call: IncomingCall): Promise<boolean>
  /** WhatsApp's notification is acknowledged once this resolves. If it rejects, WhatsApp repeats the notification. */
  groupChanged(group: string, changes: readonly GroupChange[], notice: GroupNotice | null): Promise<void>
  /** Baileys has queried all groups after WhatsApp reported missed changes. */
  groupsListed(groups: readonly GroupDetails[]): void
  contacts(contacts: readonly HeardContact[]): void
  /** The phone has sent the key of its address book. */
  addressBookReadable(): void
  /** The address book has changed. Its new version is stored once this resolves, and the names in it are reported later. */
  addressBookChanging(): Promise<void>
  /** The names that came with a change have all been reported. */
  addressBookReported(): void
}

/** Events that indicate the health of an account and its socket. */
export interface VitalSigns {
  frame(): void
  /** A delivered message could not be decrypted. Usually its sender sends it again. Reported with the retry request. */
  undecryptable(): void
  /** WhatsApp reports whether the account may write to strangers. */
  restriction(notice: RestrictionNotice): void
}

/** WhatsApp's answer to a message of ours. */
export interface Acknowledgement {
  whatsappId: string
  /** The address of the chat, if WhatsApp names it. */
  chat: string | undefined
  /** WhatsApp's error code if it refused the message. */
  error: number | undefined
  /** WhatsApp's hash of the recipient's devices. It differs from ours if we wrote to other devices. */
  devicesHash: string | undefined
}
