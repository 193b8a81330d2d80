import { LeaseLost, StoreUnavailable } from '../../store/errors.ts'
import type { PlainError } from './messages.ts'

export function toPlain(error: unknown): PlainError {
  if (error instanceof LeaseLost) return { ...describe(error), instanceId: error.instanceId }
  return describe(error instanceof Error ? error : new Error(String(error)))
}

/** Restores the classes that the driver distinguishes. */
export function fromPlain({ name, message, stack, instanceId }: PlainError): Error {
  const error =
    instanceId !== undefined
      ? new LeaseLost(instanceId)
      : name === 'StoreUnavailable'
        ? new StoreUnavailable(message)
        : Object.assign(new Error(message), { name })
  if (stack !== undefined) error.stack = stack
  return error
}

function describe({ name, message, stack }: Error): PlainError {
  return { name, message, stack }
}
