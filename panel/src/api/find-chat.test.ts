import { afterEach, expect, test, vi } from 'vitest'
import { findChat } from './find-chat.ts'

afterEach(() => void vi.unstubAllGlobals())

const GROUP = '120363041234567890@g.us'

test('a group without messages has its name, even after the first page of groups', async () => {
  vi.stubGlobal('fetch', async (address: string) => {
    const url = new URL(address, 'http://panel')
    const isGroups = url.pathname.endsWith('/groups')
    if (isGroups && url.searchParams.get('cursor') === null) return Response.json({ data: [], nextCursor: 'next' })
    return Response.json({ data: isGroups ? [{ id: GROUP, subject: 'Zumba' }] : [], nextCursor: null })
  })
  expect(await findChat('inst_1', GROUP, new AbortController().signal)).toMatchObject({ chat: GROUP, name: 'Zumba' })
})
