"""An array that came through pickle, and so has a dtype instance of its own; whoever copies it shares that instance."""

import pickle

import numpy as np

ARRAY = pickle.loads(pickle.dumps(np.linspace(0.0, 1.0, 16)))
