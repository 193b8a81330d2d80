export interface PacesTable {
  instance_id: string
  /** A `Pace` as JSON. */
  settings: string
  opens_at: number
  new_recipients_at: number
}

/** Messages that were granted their turn: all of the last minute, and those to new recipients of the day. */
export interface PaceUsesTable {
  instance_id: string
  message_id: string
  /** Null if it was a contact. */
  recipient: string | null
  at: number
}
