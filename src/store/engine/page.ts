/** One page of a list, newest first unless stated otherwise. `nextCursor` is opaque, and null on the last page. */
export interface Page<T> {
  data: T[]
  nextCursor: string | null
}

export interface PageRequest {
  /** A `nextCursor`; anything else throws `InvalidCursor`. */
  cursor?: string | undefined
  /** 1–200. */
  limit: number
}
