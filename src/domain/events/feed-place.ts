import type { EventId, InstanceId } from '../ids.ts'

const MARK_CHARACTERS = 8
const CURSOR = /^([0-9]{1,15})(?:\.([0-9a-z]{8}))?$/

/** The place after an event in the feed of its instance. */
export interface FeedPlace {
  /** The number of the event; 0 before the first one. */
  seq: number
  /**
   * The end of the event's ID. It distinguishes the event from one with the same number in another feed, or in this
   * feed after a restore. For a place without an event: the end of the instance's ID. Null in cursors of earlier
   * versions, which were plain numbers.
   */
  mark: string | null
}

/** @param id the ID of the event, or of the instance if the place has no event */
export function placeOf(seq: number, id: EventId | InstanceId): FeedPlace {
  return { seq, mark: markOf(id) }
}

export function markOf(id: EventId | InstanceId): string {
  return id.slice(-MARK_CHARACTERS)
}

export function formatCursor({ seq, mark }: FeedPlace): string {
  return mark === null ? `${seq}` : `${seq}.${mark}`
}

/** @returns null unless it is a cursor */
export function parseCursor(cursor: string): FeedPlace | null {
  const [, seq, mark = null] = CURSOR.exec(cursor) ?? []
  return seq === undefined ? null : { seq: Number(seq), mark }
}
