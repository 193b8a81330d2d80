import { describe, expect, test } from 'vitest'
import type { InstanceId, MessageId } from '../../../../src/domain/ids.ts'
import { newCommandId } from '../../../../src/domain/ids.ts'
import type { NewMessage } from '../../../../src/store/messages/messages.ts'
import { accept, bodyOf, createConnected, newMessage, withStore } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'

type RequestedCommand = NonNullable<NonNullable<NewMessage['extras']>['command']>

function newCommand(instanceId: InstanceId, command: RequestedCommand): NewMessage {
  return newMessage(instanceId, { id: newCommandId(Date.now()), to: '', text: '', extras: { command } })
}

function newDeletion(instanceId: InstanceId, targetId: MessageId): NewMessage {
  return newCommand(instanceId, { kind: 'delete', targetId })
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

    test.each([
      ['scheduled', 5_000, 0],
      ['scheduled and released', 5_000, 5_000],
      ['queued', undefined, 0],
    ])(
      'the commands on a %s message end when it is cancelled, after it, and no others',
      async (_, notBefore, releasedAt) => {
        const { store } = context
        const lease = await createConnected(store)
        const { instanceId } = lease
        const take = async (message: NewMessage) => {
          expect(await store.messages.accept(message, 1_000)).toMatchObject({ kind: 'accepted' })
          return message.id
        }
        const plan = notBefore === undefined ? {} : { notBefore }
        const cancelled = await take(newMessage(instanceId, plan))
        const other = await take(newMessage(instanceId, { ...plan, extras: { metadata: { messageId: cancelled } } }))
        const reaction = await take(newCommand(instanceId, { kind: 'reaction', emoji: '👍', targetId: cancelled }))
        const ofOther = await take(newCommand(instanceId, { kind: 'reaction', emoji: '👍', targetId: other }))
        const edit = await take(newCommand(instanceId, { kind: 'edit', text: 'new', targetId: cancelled }))
        await store.messages.releaseDue(lease, releasedAt)
        const deletion = await take(newDeletion(instanceId, cancelled))
        for (const id of [reaction, edit])
          expect(await store.messages.findCommand(instanceId, id)).toMatchObject({
            failure: { code: 'message_failed' },
          })
        expect(await store.messages.findCommand(instanceId, ofOther)).toMatchObject({ failedAt: null, doneAt: null })
        const page = await store.events.readFeed(instanceId, {
          after: { seq: 0, mark: null },
          limit: 10,
          maxBytes: 1e6,
        })
        const ends = page!.events.map(event => [event.kind, bodyOf(event).data['id']])
        expect(ends.filter(([kind]) => kind === 'message.failed' || String(kind).startsWith('command'))).toEqual([
          ['message.failed', cancelled],
          ['command.failed', reaction],
          ['command.failed', edit],
          ['command.done', deletion],
        ])
      },
    )
  })
}
