export interface Picture {
  id: string
  /** Where the media host keeps it. */
  directPath: string
  /** SHA-256, in base64. */
  hash: string
}

/** The part of a person's profile that others see. */
export interface Profile {
  about?: { text: string; at: number } | undefined
  picture?: Picture | undefined
  username?: string | undefined
}
