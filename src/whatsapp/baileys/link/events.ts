import type { IncomingMessage } from '../../../domain/incoming-message.ts'
import type { LinkEnd } from '../link-end.ts'
import type { SentReceipt } from '../parse-receipt.ts'
import type { Acknowledgement } from './acknowledgement.ts'
import type { VitalSigns } from './vital-signs.ts'

/** What a link reports to its connection. */
export interface LinkEvents extends VitalSigns {
  /** A new QR code, which replaces the one before. */
  qr(text: string): void
  /** A phone has linked us. WhatsApp requests a new socket next. */
  paired(): void
  opened(): void
  /** The link ended by itself. This is its last event: buffered events were emitted before. */
  closed(end: LinkEnd): void
  acknowledged(ack: Acknowledgement): void
  /** The receipt is acknowledged to WhatsApp once this resolves. If it rejects, WhatsApp delivers the receipt again. */
  receipt(receipt: SentReceipt): Promise<void>
  /** The message is acknowledged to WhatsApp once this resolves. If it rejects, WhatsApp delivers the message again. */
  received(message: IncomingMessage): Promise<void>
  /** True if the message is recorded already. Its content does not matter. */
  isRecorded(message: IncomingMessage): Promise<boolean>
  groupChanged(group: string): void
}
