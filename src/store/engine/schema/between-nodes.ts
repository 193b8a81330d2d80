/** What one node asks of the simulated phone that another one runs. */
export interface PhoneOrdersTable {
  instance_id: string
  id: string
  /** On the database's clock. */
  left_at: number
  /** Null: taken by the owner. */
  body: string | null
  answer: string | null
}

/** Wrong admin keys and passwords, by the address that they came from. */
export interface WrongKeysTable {
  address: string
  /** On the database's clock. */
  ends_at: number
  count: number
}
