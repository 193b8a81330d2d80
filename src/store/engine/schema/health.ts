export interface ConnectionHealthTable {
  instance_id: string
  last_frame_at: number | null
  /** Set together. */
  ack_at: number | null
  ack_latency_ms: number | null
  undecryptable: number
  undecryptable_at: number | null
}

/** Closes of sockets. Recording new ones deletes those older than a day. */
export interface ConnectionClosesTable {
  instance_id: string
  at: number
  code: number
}
