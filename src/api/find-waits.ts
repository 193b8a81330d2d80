import type { InstanceId, MessageId } from '../domain/ids.ts'
import type { Message, Waiting } from '../domain/message.ts'
import type { Store } from '../store/store.ts'

/** Finds what each message waits for. The result does not contain messages that wait for nothing. */
export function findWaits(
  { paces }: Store,
  instanceId: InstanceId,
  messages: readonly Message[],
  now: number,
): Promise<ReadonlyMap<MessageId, Waiting>> {
  const queued = messages.flatMap(({ id, state }) => (state === 'queued' ? [id] : []))
  return paces.findWaits(instanceId, queued, now)
}
