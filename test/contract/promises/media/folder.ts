import { describe, expect, test } from 'vitest'
import type { Store } from '../../../../src/store/store.ts'
import { newInstance } from '../../fixture.ts'
import type { CreateHarness } from '../../harness.ts'
import { storeFile } from './media.ts'

export function folderContract(createHarness: CreateHarness): void {
  describe('the recorded ID of the folder of files', () => {
    async function recorded(before: (store: Store) => Promise<unknown> = async () => undefined) {
      const harness = await createHarness()
      try {
        const store = await harness.open()
        expect(await store.media.recordFolder('earlier', null)).toBe('earlier')
        await before(store)
        return await store.media.recordFolder('later', 'earlier')
      } finally {
        await harness.dispose()
      }
    }

    test('is replaced only if it has not changed since it was read', async () => {
      expect(await recorded()).toBe('later')
      expect(await recorded(store => store.media.recordFolder('of another node', 'earlier'))).toBe('of another node')
    })

    test('is not replaced if another node runs by now, or a file is stored', async () => {
      expect(await recorded(store => store.leases.attend('a'))).toBe('earlier')
      const storeOne = async (store: Store) => storeFile(store, (await store.instances.create(newInstance(), 0)).id)
      expect(await recorded(storeOne)).toBe('earlier')
    })
  })
}
