import { describe, expect, test } from 'vitest'
import type { InstanceId, MessageId } from '../../../../src/domain/ids.ts'
import { newCommandId } from '../../../../src/domain/ids.ts'
import type { NewMessage } from '../../../../src/store/messages/messages.ts'
import { accept, createConnected, newMessage, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

function newDeletion(instanceId: InstanceId, targetId: MessageId): NewMessage {
  const id = newCommandId(Date.now())
  return newMessage(instanceId, { id, to: '', text: '', extras: { command: { kind: 'delete', targetId } } })
}

export function commandsContract(createHarness: CreateHarness): void {
  describe('commands', () => {
    const context = withStore(createHarness)

    test('concurrent deletions of an unwritten message report one failure', async () => {
      const { store } = context
      const { instanceId } = await createConnected(store)
      const { id } = await accept(store, instanceId, { notBefore: Date.now() + 3_600_000 })
      const deletions = Array.from({ length: 3 }, () => newDeletion(instanceId, id))
      const outcomes = await Promise.all(deletions.map(deletion => store.messages.accept(deletion, Date.now())))
      expect(outcomes[0]).toEqual({ kind: 'accepted', id: deletions[0]!.id })
      expect(await store.messages.find(instanceId, id)).toMatchObject({
        state: 'failed',
        failure: { code: 'cancelled' },
      })
      const events = await store.messages.listEvents(instanceId, id)
      expect(events.map(({ kind }) => kind)).toEqual(['message.failed'])
      const ends = await store.messages.listEvents(instanceId, deletions[0]!.id)
      expect(ends.map(({ kind }) => kind)).toEqual(['command.done'])
    })
  })
}
