import type { SendTrace, Traceparent } from '../../domain/trace-context.ts'
import type { QueuedMessage } from '../../store/messages/messages.ts'
import type { SendOutcome } from './send.ts'

/** Called when an attempt to send a message with a trace context has ended. */
export type OnSent = (send: SendTrace) => void

/** Reports an attempt, unless the message still has to wait or was deleted. */
export function traceSend(
  onSent: OnSent,
  { instanceId, id: messageId }: QueuedMessage,
  traceparent: Traceparent,
  outcome: SendOutcome,
  durationMs: number,
): void {
  const { kind } = outcome
  if (kind !== 'acknowledged' && kind !== 'unanswered' && kind !== 'refused') return
  const problem = kind === 'acknowledged' ? null : kind === 'unanswered' ? outcome.why : outcome.failure.code
  onSent({ instanceId, messageId, traceparent, durationMs, problem })
}
