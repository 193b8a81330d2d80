import { createTheme, type MantineColorsTuple } from '@mantine/core'

/** The slate blue of a pigeon's back. */
const pigeon: MantineColorsTuple = [
  '#eef3f7',
  '#dce6ed',
  '#bacdd9',
  '#94b1c3',
  '#7498af',
  '#5b839d',
  '#43708c',
  '#335a73',
  '#2a4b60',
  '#1f394a',
]

/** The terracotta of a dovecote's roof. */
const tile: MantineColorsTuple = [
  '#fdf1ec',
  '#f8ddd2',
  '#efb9a5',
  '#e69377',
  '#dc7350',
  '#cd623f',
  '#b5563a',
  '#97452d',
  '#7c3825',
  '#612b1c',
]

/** Red for destructive actions, dark enough for white text. */
const red: MantineColorsTuple = [
  '#fdeceb',
  '#fad7d4',
  '#f2aba6',
  '#ea7d75',
  '#e2564c',
  '#d04037',
  '#bb372e',
  '#b02f26',
  '#8f261f',
  '#721e18',
]

/** The slate colours of Mantine's dark scheme. */
const dark: MantineColorsTuple = [
  '#e9e7e2',
  '#c3c8cc',
  '#9ca5ad',
  '#6e7983',
  '#39434b',
  '#2b333a',
  '#20272d',
  '#1a1f24',
  '#151a1e',
  '#12161a',
]

/** The head of a dialog is a `header`, which would count as a second banner of the page. */
const HEAD_OF_DIALOG = { header: { role: 'presentation' } }

const MONO = "'JetBrains Mono Variable', ui-monospace, 'SF Mono', Menlo, monospace"

export const theme = createTheme({
  colors: { pigeon, tile, red, dark },
  primaryColor: 'pigeon',
  primaryShade: { light: 7, dark: 6 },
  autoContrast: true,
  luminanceThreshold: 0.35,
  fontFamily: "'Figtree Variable', system-ui, -apple-system, 'Segoe UI', sans-serif",
  fontFamilyMonospace: MONO,
  headings: { fontFamily: "'Figtree Variable', system-ui, sans-serif", fontWeight: '650' },
  defaultRadius: 'md',
  cursorType: 'pointer',
  focusRing: 'auto',
  respectReducedMotion: true,
  components: {
    Modal: {
      defaultProps: {
        centered: true,
        radius: 'lg',
        overlayProps: { backgroundOpacity: 0.4, blur: 2 },
        attributes: HEAD_OF_DIALOG,
      },
    },
    Drawer: {
      defaultProps: { position: 'right', overlayProps: { backgroundOpacity: 0.25 }, attributes: HEAD_OF_DIALOG },
    },
    Tooltip: { defaultProps: { withArrow: true, openDelay: 300 } },
  },
})
