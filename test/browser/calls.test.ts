import { expect, test } from 'vitest'
import { PanelHarness } from './harness.ts'

test('calls are rejected with a text that is set in the settings, in either language', async () => {
  await using harness = await PanelHarness.start()
  const { admin } = harness.service
  const { id } = await admin.createInstance('sandbox')
  const page = await harness.openSignedIn(`/instances/${id}/settings`)
  const card = page.locator('section', { hasText: 'What happens if somebody calls the number.' })
  await card.getByRole('switch').click()
  await page.getByLabel('Text to the caller').fill('Please write to us.')
  await card.getByRole('button', { name: 'Save' }).click()
  await page.getByText('Saved. It applies to the next call.').waitFor()
  expect(await admin.calls(id)).toEqual({ reject: true, text: 'Please write to us.' })
  await page.context().close()

  const portuguese = await harness.openSignedIn(`/instances/${id}/settings`, { locale: 'pt-BR' })
  const text = portuguese.getByLabel('Texto para quem liga')
  await text.waitFor()
  expect(await text.inputValue()).toBe('Please write to us.')
  const cartao = portuguese.locator('section', { hasText: 'O que acontece se alguém ligar' })
  await cartao.getByRole('switch').click()
  await cartao.getByRole('button', { name: 'Salvar' }).click()
  await portuguese.getByText('Salvo. Vale a partir da próxima ligação.').waitFor()
  expect(await admin.calls(id)).toEqual({ reject: false, text: null })
  expect(harness.complaints).toEqual([])
  await portuguese.context().close()
})
