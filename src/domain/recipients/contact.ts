/** The phone's report about a person or a chat. Null: unknown. */
export interface HeardContact {
  /** A number, a LID address if the number is unknown, or a group. */
  chat: string
  lid: string | null
  /** From the phone's address book. */
  name: string | null
  /** As the person has chosen it. */
  pushName: string | null
  username: string | null
  /** Milliseconds since 1970. */
  lastMessageAt: number | null
}
