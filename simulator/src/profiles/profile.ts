export interface Picture {
  id: string
  /** Where the media host keeps it. */
  directPath: string
  /** SHA-256, in base64. */
  hash: string
}

/** What others see of a person. */
export interface Profile {
  about?: { text: string; at: number } | undefined
  picture?: Picture | undefined
  username?: string | undefined
}
