/** Receives what the store cannot report to a caller. */
export interface StoreLogger {
  info(fields: object, message: string): void
  warn(fields: object, message: string): void
}
