/** Receives problems that the store cannot report to a caller. */
export interface StoreLogger {
  warn(fields: object, message: string): void
}
