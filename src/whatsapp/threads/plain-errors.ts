import { LeaseLost, StoreUnavailable } from '../../store/errors.ts'
import type { PlainError } from './messages.ts'

export function toPlain(error: unknown): PlainError {
  if (!(error instanceof Error)) return toPlain(new Error(String(error)))
  const { name, message, stack, cause } = error
  return {
    name,
    message,
    stack,
    ...(error instanceof LeaseLost && { instanceId: error.instanceId }),
    ...(cause instanceof Error && { cause: toPlain(cause) }),
  }
}

/** Restores the classes that the driver distinguishes. */
export function fromPlain(plain: PlainError): Error {
  const error = restoreClass(plain)
  if (plain.stack !== undefined) error.stack = plain.stack
  if (plain.cause) error.cause = fromPlain(plain.cause)
  return error
}

function restoreClass({ name, message, instanceId }: PlainError): Error {
  if (instanceId !== undefined) return new LeaseLost(instanceId)
  if (name === 'StoreUnavailable') return new StoreUnavailable(message)
  return Object.assign(new Error(message), { name })
}
