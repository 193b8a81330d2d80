import type { Turns } from '../../kit/turns.ts'
import type { Store } from '../../store/store.ts'
import type { Receiver } from '../receiving/downloads.ts'
import type { Files } from '../sending/uploads.ts'

/** The parts of the store that a connection uses. */
export type ConnectionStore = Pick<
  Store,
  'connections' | 'messages' | 'events' | 'credentials' | 'numbers' | 'paces' | 'directory' | 'downloads' | 'hints'
>

/** The storage of files, as the connections of a thread use it. */
export interface ConnectionFiles {
  /** Reads the files of messages that are sent. */
  reader: Files
  receiver: Receiver
  /** Limits how many files the connections fetch at once. */
  turns: Turns
}
