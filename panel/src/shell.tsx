import { ActionIcon, Button, Menu, Tooltip, useComputedColorScheme, useMantineColorScheme } from '@mantine/core'
import { useMutation, useQuery, useQueryClient } from '@tanstack/react-query'
import { Link, Outlet, useNavigate } from '@tanstack/react-router'
import { useCallback, useState } from 'react'
import { ApiError, call } from './api/client.ts'
import { useAwaySince, useLiveChanges, useLiveState } from './api/live.ts'
import { sessionQuery } from './api/queries.ts'
import { forgetUnsent } from './api/unsent.ts'
import { useMay } from './api/use-role.ts'
import { Confirm } from './components/feedback/confirm.tsx'
import { Notice } from './components/feedback/notice.tsx'
import { BellIcon, GearIcon, GlobeIcon, MoonIcon, SearchIcon, SignOutIcon, SunIcon } from './components/icons.tsx'
import { Empty } from './components/panels.tsx'
import { SearchPalette } from './components/search-palette.tsx'
import { Time } from './components/time.tsx'
import { useTitle } from './components/title.ts'
import dove from './dove.svg'
import { useLanguage, useWords } from './i18n/i18n.tsx'
import { LANGUAGES } from './i18n/languages.ts'
import classes from './shell.module.css'

/** The frame of every page behind the sign-in. */
export function Shell() {
  const words = useWords()
  const isOwner = useMay('owner')
  useLiveChanges()
  const [isSearching, setSearching] = useState(false)
  const openSearch = useCallback(() => setSearching(true), [])
  return (
    <>
      <a className="skip-link" href="#content">
        {words.common.skip}
      </a>
      <header className={classes.bar}>
        <div className={classes.inner}>
          <Link to="/" className={classes.brand} aria-label={words.shell.home}>
            <img src={dove} alt="" width="28" height="28" />
            <span>Pombal</span>
          </Link>
          <LiveMark />
          <nav className={classes.tools} aria-label={words.shell.menu}>
            <Button
              renderRoot={props => <Link to="/guides" {...props} />}
              variant="subtle"
              color="gray"
              size="compact-sm"
              visibleFrom="sm"
            >
              {words.guides.title}
            </Button>
            <Button component="a" href="/docs/" variant="subtle" color="gray" size="compact-sm" visibleFrom="sm">
              {words.shell.apiReference}
            </Button>
            {isOwner && (
              <Tooltip label={words.alerts.title}>
                <ActionIcon
                  renderRoot={props => <Link to="/alerts" {...props} />}
                  variant="subtle"
                  color="gray"
                  size="lg"
                  aria-label={words.alerts.title}
                >
                  <BellIcon />
                </ActionIcon>
              </Tooltip>
            )}
            <Tooltip label={words.tools.searchKeys}>
              <ActionIcon
                variant="subtle"
                color="gray"
                size="lg"
                aria-label={words.tools.searchKeys}
                aria-keyshortcuts="Control+K Meta+K /"
                onClick={openSearch}
              >
                <SearchIcon />
              </ActionIcon>
            </Tooltip>
            <LanguageMenu />
            <SchemeButton />
            <Tooltip label={words.shell.settings}>
              <ActionIcon
                renderRoot={props => <Link to="/settings" {...props} />}
                variant="subtle"
                color="gray"
                size="lg"
                aria-label={words.shell.settings}
              >
                <GearIcon />
              </ActionIcon>
            </Tooltip>
            <SignOutButton />
          </nav>
        </div>
      </header>
      <main id="content" className={classes.content} tabIndex={-1}>
        <AwayNotice />
        <Outlet />
        <SandboxBanner />
      </main>
      <SearchPalette opened={isSearching} onOpen={openSearch} onClose={() => setSearching(false)} />
    </>
  )
}

/** Shown below every page while the sandbox is on. */
function SandboxBanner() {
  const words = useWords()
  const { data: session } = useQuery(sessionQuery)
  if (!session?.sandbox) return null
  return <p className={classes.sandbox}>{words.shell.sandboxOn}</p>
}

/** Warns on every page that its data may be out of date. */
function AwayNotice() {
  const words = useWords()
  const since = useAwaySince()
  if (since === null) return null
  return (
    <div className={classes.away}>
      <Notice tone="bad" title={words.shell.away}>
        {words.shell.awaySince} <Time at={new Date(since).toISOString()} />. {words.shell.awayText}
      </Notice>
    </div>
  )
}

function LiveMark() {
  const words = useWords()
  const state = useLiveState()
  const text = { live: words.shell.live, connecting: words.shell.connecting, lost: words.shell.lost }[state]
  return (
    <span className={classes.live} data-state={state} role="status">
      <span className={classes.liveDot} aria-hidden />
      <span>{text}</span>
    </span>
  )
}

export function LanguageMenu() {
  const words = useWords()
  const { language, setLanguage } = useLanguage()
  return (
    <Menu position="bottom-end" withinPortal>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={words.shell.language}>
          <GlobeIcon />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {LANGUAGES.map(({ code, name }) => (
          <Menu.Item key={code} lang={code} onClick={() => setLanguage(code)} fw={code === language ? 650 : 400}>
            {name}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  )
}

export function SchemeButton() {
  const words = useWords()
  const { setColorScheme } = useMantineColorScheme()
  const scheme = useComputedColorScheme('light')
  const label = scheme === 'dark' ? words.shell.toLight : words.shell.toDark
  return (
    <Tooltip label={label}>
      <ActionIcon
        variant="subtle"
        color="gray"
        size="lg"
        aria-label={label}
        onClick={() => setColorScheme(scheme === 'dark' ? 'light' : 'dark')}
      >
        {scheme === 'dark' ? <SunIcon /> : <MoonIcon />}
      </ActionIcon>
    </Tooltip>
  )
}

function SignOutButton() {
  const words = useWords()
  const navigate = useNavigate()
  const client = useQueryClient()
  const [hasFailed, setFailed] = useState(false)
  const signOut = useMutation({
    mutationFn: () => call('/session', { method: 'DELETE' }),
    onSettled: async (_, error) => {
      const isOver = !error || (error instanceof ApiError && error.code === 'invalid_admin_key')
      setFailed(!isOver)
      if (!isOver) return
      await navigate({ to: '/sign-in' })
      client.clear()
      forgetUnsent()
    },
  })
  return (
    <>
      <Tooltip label={words.shell.signOut}>
        <ActionIcon
          variant="subtle"
          color="gray"
          size="lg"
          aria-label={words.shell.signOut}
          disabled={signOut.isPending}
          onClick={() => signOut.mutate()}
        >
          <SignOutIcon />
        </ActionIcon>
      </Tooltip>
      <Confirm
        opened={hasFailed}
        onClose={() => setFailed(false)}
        title={words.shell.stillSignedIn}
        action={words.shell.signOut}
        onConfirm={() => signOut.mutateAsync()}
      >
        {words.shell.stillSignedInText}
      </Confirm>
    </>
  )
}

export function NotFound() {
  const words = useWords()
  useTitle(words.shell.notFound)
  return (
    <main className={classes.content}>
      <Empty
        level={1}
        title={words.shell.notFound}
        action={<Button renderRoot={props => <Link to="/" {...props} />}>{words.shell.toInstances}</Button>}
      />
    </main>
  )
}
