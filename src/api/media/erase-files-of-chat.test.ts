import { expect, test } from 'vitest'
import type { Conversations } from '../../store/conversations/conversations.ts'
import type { Store } from '../../store/store.ts'
import { eraseFilesOfChat } from './erase-files-of-chat.ts'

/** A chat with these pages of files. */
function chatOf(...pages: readonly (readonly string[])[]): Pick<Store, 'conversations'> {
  const listFiles: Conversations['listFiles'] = async (_id, { cursor = '0' }) => {
    const at = Number(cursor)
    return { data: [...pages[at]!], nextCursor: at + 1 < pages.length ? String(at + 1) : null }
  }
  return { conversations: { listFiles } as Conversations }
}

function storage(onErase: (id: string) => void = () => undefined) {
  const erased: string[] = []
  let open = 0
  return {
    erased,
    get open() {
      return open
    },
    erase: async (_instance: string, id: string) => {
      erased.push(id)
      onErase(id)
    },
    beginErasure: () => {
      open += 1
      return {
        [Symbol.dispose]: () => {
          open -= 1
        },
      }
    },
  }
}

test('the files of all pages are erased, each once', async () => {
  const media = storage()
  const signal = new AbortController().signal
  const outcome = await eraseFilesOfChat(chatOf(['a', 'b', 'a'], [], ['b', 'c']), media, 'ins_1', '5511', signal)
  expect(outcome).toEqual({ erased: 3, inUse: 0 })
  expect(media.erased).toEqual(['a', 'b', 'c'])
  expect(media.open).toBe(0)
})

test('nothing more is erased after the caller has disconnected, and another call may begin', async () => {
  const left = new AbortController()
  const media = storage(id => {
    if (id === 'b') left.abort()
  })
  const erasure = eraseFilesOfChat(chatOf(['a', 'b', 'c'], ['d']), media, 'ins_1', '5511', left.signal)
  await expect(erasure).rejects.toMatchObject({ code: 'service_unavailable' })
  expect(media.erased).toEqual(['a', 'b'])
  expect(media.open).toBe(0)
})
