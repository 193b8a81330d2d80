import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import type { Page } from 'playwright-core'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { LANGUAGES } from '../../panel/src/i18n/languages.ts'
import { findFreePort } from '../free-port.ts'
import { TestProvider } from '../oidc/provider.ts'
import { redirectUriAt, settingsFor } from '../oidc/service.ts'
import { PanelHarness } from './harness.ts'

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8')
const PASSWORD = 'correct horse battery'

let harness: PanelHarness
let provider: TestProvider
beforeAll(async () => {
  const port = await findFreePort()
  provider = await TestProvider.start({ redirectUri: redirectUriAt(port) })
  harness = await PanelHarness.start(settingsFor(port, provider.issuer))
})
afterAll(async () => {
  await harness.dispose()
  await provider.close()
})
afterEach(() => harness.closePages())

async function invite(name: string): Promise<string> {
  const response = await fetch(`${harness.url}/admin/v1/accounts`, {
    method: 'POST',
    headers: { authorization: `Bearer ${harness.service.adminKey}`, 'content-type': 'application/json' },
    body: JSON.stringify({ name, role: 'viewer' }),
  })
  const { data } = (await response.json()) as { data: { url: string } }
  return data.url
}

function addPerson(login: string, isVerified = true): void {
  provider.people.set(login, { email: `${login}@example.com`, email_verified: isVerified })
}

/** Signs in on the pages of the provider. */
async function signInAtProvider(page: Page, login: string): Promise<void> {
  await page.locator('input[name="login"]').fill(login)
  await page.getByRole('button', { name: 'Sign in', exact: true }).click()
}

async function findings(page: Page): Promise<string[]> {
  // Evaluated by the debugger, which the policy of the page does not restrict.
  await page.evaluate(AXE)
  return page.evaluate(async () => {
    const { axe } = window as unknown as { axe: { run(): Promise<{ violations: { id: string }[] }> } }
    return (await axe.run()).violations.map(({ id }) => id)
  })
}

/** The texts of the refusals, as the panel has them: in English they come from the service. */
const SENTENCES = {
  en: {
    button: 'Sign in with Castle',
    settings: 'Settings',
    oidc_denied: 'was cancelled or not allowed',
    oidc_unknown_account: 'No account has your e-mail address',
    oidc_unreachable: 'does not answer as it should',
  },
  'pt-BR': {
    button: 'Entrar com Castle',
    settings: 'Configurações',
    oidc_denied: 'foi cancelada ou não é permitida',
    oidc_unknown_account: 'Nenhuma conta tem seu endereço de e-mail',
    oidc_unreachable: 'não responde como deveria',
  },
}

describe.each(LANGUAGES.map(({ code }) => code))('in the language %s', code => {
  const sentences = SENTENCES[code]

  test('the button leads to the provider and back to the page that was asked for', async () => {
    addPerson('ana')
    await invite(`ana@example.com`).catch(() => undefined)
    const page = await harness.open('/settings', { locale: code })
    await page.waitForURL(/\/sign-in\?from=/)
    await page.getByRole('button', { name: sentences.button }).waitFor()
    expect(await findings(page)).toEqual([])
    await page.getByRole('button', { name: sentences.button }).focus()
    await page.keyboard.press('Enter')
    await signInAtProvider(page, 'ana')
    await page.waitForURL(`${harness.url}/settings`)
    await page.getByRole('heading', { level: 1, name: sentences.settings }).waitFor()
    // The person has no password, so none can be changed.
    expect(await page.locator('input[type="password"]').count()).toBe(0)
  })

  test('a refusal is explained on the sign-in page, with its code, and the page can be used again', async () => {
    addPerson('stranger')
    const page = await harness.open('/sign-in', { locale: code })
    await page.getByRole('button', { name: sentences.button }).click()
    await page.getByRole('button', { name: 'Cancel' }).click()
    await page.getByRole('alert').getByText(sentences.oidc_denied).waitFor()
    await page.getByRole('alert').getByText('oidc_denied').waitFor()
    expect(page.url()).toBe(`${harness.url}/sign-in/oidc`)
    expect(await findings(page)).toEqual([])
    await page.getByRole('button', { name: sentences.button }).click()
    await signInAtProvider(page, 'stranger')
    await page.getByRole('alert').getByText(sentences.oidc_unknown_account).waitFor()
    await page.reload()
    await page.getByRole('button', { name: sentences.button }).waitFor()
    expect(await page.getByRole('alert').count()).toBe(0)
    await page.locator('input[type="password"]').fill(harness.service.adminKey)
    await page.keyboard.press('Enter')
    await page.waitForURL(`${harness.url}/`)
  })
})

test('a link to the sign-in page cannot lead to another site, neither with the provider nor with a password', async () => {
  addPerson('ana')
  for (const from of ['//evil.example/x', '/\\evil.example', 'https://evil.example', '/\t/evil.example']) {
    const page = await harness.open(`/sign-in?from=${encodeURIComponent(from)}`)
    await page.getByRole('button', { name: 'Sign in with Castle' }).click()
    await signInAtProvider(page, 'ana')
    await page.waitForURL(`${harness.url}/`)
    await page.context().clearCookies()
    await page.goto(`${harness.url}/sign-in?from=${encodeURIComponent(from)}`)
    await page.locator('input[type="password"]').fill(harness.service.adminKey)
    await page.keyboard.press('Enter')
    await page.waitForURL(`${harness.url}/`)
  }
})

test('an invitation is accepted with the provider; the list of people shows it', async () => {
  provider.people.set('zoe', {})
  const page = await harness.open(new URL(await invite('Zoe')).href.slice(harness.url.length))
  await page.getByRole('button', { name: 'Sign in with Castle' }).waitFor()
  expect(await findings(page)).toEqual([])
  await page.getByRole('button', { name: 'Sign in with Castle' }).click()
  await signInAtProvider(page, 'zoe')
  await page.waitForURL(`${harness.url}/`)
  const owner = await harness.openSignedIn('/people')
  await owner.getByRole('listitem').filter({ hasText: 'Zoe' }).getByText('signs in with the provider').waitFor()
})

test('somebody who also has a password can still change it', async () => {
  const page = await harness.open(new URL(await invite('Bea')).href.slice(harness.url.length))
  await page.locator('input[type="password"]').fill(PASSWORD)
  await page.getByRole('button', { name: 'Set the password and sign in' }).click()
  await page.waitForURL(`${harness.url}/`)
  await page.goto(`${harness.url}/settings`)
  await page.getByRole('button', { name: 'Change password' }).waitFor()
})

test('while the provider fails, the sign-in page says so; afterwards the same button works', async () => {
  provider.fault = { is: 'status 503', at: /^\/token/ }
  addPerson('ana')
  const page = await harness.open('/sign-in')
  await page.getByRole('button', { name: 'Sign in with Castle' }).click()
  await signInAtProvider(page, 'ana')
  await page.getByRole('alert').getByText(SENTENCES.en.oidc_unreachable).waitFor()
  provider.fault = { is: 'none', at: /^/ }
  await page.getByRole('button', { name: 'Sign in with Castle' }).click()
  await page.waitForURL(`${harness.url}/`)
  expect(harness.complaints.filter(line => !/status of 502/.test(line))).toEqual([])
})
