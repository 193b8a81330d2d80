/** One page of a list, newest first unless said otherwise. `nextCursor` is opaque; null at the end. */
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
