/** What happens to phone calls to an instance. */
export interface CallPolicy {
  /** Whether calls are rejected, which also ends the ringing on the phone. */
  reject: boolean
  /** Sent to the caller of a rejected call. Null: nothing. */
  text: string | null
}

export interface IncomingCall {
  /** WhatsApp's ID. */
  id: string
  /** The caller's number, or their LID address if WhatsApp does not give the number. */
  from: string
  /** Whether the whole group is called. */
  isGroup: boolean
  /** When it began, milliseconds since 1970. */
  at: number
}
