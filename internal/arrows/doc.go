package arrows
