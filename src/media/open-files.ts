import type { Logger } from 'pino'
import type { MediaPlace, MediaTerms } from '../domain/media.ts'
import type { MediaRows } from '../store/media/media.ts'
import { FileReader } from './file-reader.ts'
import { FileReceiver } from './file-receiver.ts'
import { CALLS_AT_ONCE } from './storage/folder.ts'
import { openWhenUsed } from './storage/open-storage.ts'

interface FilesOptions extends MediaTerms {
  place: MediaPlace
  /** How many WhatsApp threads this process has. */
  threads: number
  logger: Logger
}

/** The storage for the files of messages, in a WhatsApp thread. Opened when it is first used. */
export function openFiles(
  { place, threads, logger, ...terms }: FilesOptions,
  rows: Pick<MediaRows, 'find' | 'begin' | 'extend' | 'discard' | 'forget'>,
): { reader: FileReader; receiver: FileReceiver } {
  const open = openWhenUsed(place, Math.max(1, Math.floor(CALLS_AT_ONCE / threads)))
  return { reader: new FileReader(open, rows), receiver: new FileReceiver(open, rows, terms, logger) }
}
